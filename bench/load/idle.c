/*
 * Holds many idle connections: opens them, makes the broker answer once on each (so that each is really
 * accepted, not waiting in the kernel's queue), prints "holding N" and waits for its standard input to end,
 * at most --seconds. Then counts those still open and prints one line of JSON.
 * Usage: idle --port P [--host H] [--connections 5000] [--seconds 60]
 */
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void raise_file_limit(long needed) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= (rlim_t)needed) return;
    if (limit.rlim_max < (rlim_t)needed)
        die("%ld files are needed but the hard limit is %llu: raise it with ulimit -Hn", needed,
            (unsigned long long)limit.rlim_max);
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0) die("setrlimit: %s", strerror(errno));
}

static void ask_once(int fd, const struct request *request) {
    uint8_t size[4], answer[4096];
    send_all(fd, request->data, request->length);
    receive_all(fd, size, sizeof size);
    if (read_u32(size) > sizeof answer) die("an ApiVersions answer claims %u bytes", read_u32(size));
    receive_all(fd, answer, read_u32(size));
}

static long count_open(const int *fds, long count) {
    long open = 0;
    char byte;
    for (long i = 0; i < count; i++)
        if (recv(fds[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN) open++;
    return open;
}

int main(int argc, char **argv) {
    const char *host = text_argument(argc, argv, "--host", "127.0.0.1");
    int port = (int)argument(argc, argv, "--port", 0, 1, 65535);
    long count = argument(argc, argv, "--connections", 5000, 1, 100000);
    long seconds = argument(argc, argv, "--seconds", 60, 1, 600);
    raise_file_limit(count + 16);
    int *fds = calloc((size_t)count, sizeof *fds);
    if (!fds) die("out of memory");
    struct request request;
    build_api_versions(&request);
    uint64_t start_ns = now_ns();
    for (long i = 0; i < count; i++) {
        fds[i] = connect_blocking(host, port);
        ask_once(fds[i], &request);
    }
    double opening_s = (double)(now_ns() - start_ns) / 1e9;
    printf("holding %ld\n", count);
    fflush(stdout);

    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    poll(&input, 1, (int)seconds * 1000);
    long still_open = count_open(fds, count);
    printf("{\"opened\": %ld, \"still_open\": %ld, \"opening_seconds\": %.3f}\n", count, still_open, opening_s);
    return 0;
}
