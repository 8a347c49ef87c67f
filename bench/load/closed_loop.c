/* Implements closed_loop.h with one thread and epoll. */
#include "closed_loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_DEPTH 256
#define RECEIVE_BYTES 65536

struct connection {
    int fd;
    struct request request;
    uint64_t sent_at_ns[MAX_DEPTH]; /* ring: answers come in the order of the requests */
    uint32_t sent, answered;
    size_t buffered;
    uint8_t buffer[RECEIVE_BYTES];
};

struct run {
    struct work work;
    long count, depth;
    long sent, answered;
    uint32_t *samples_ns;
};

static void send_one(struct run *run, struct connection *connection) {
    set_correlation(&connection->request, connection->sent);
    if (run->work.before_send) run->work.before_send(&connection->request, connection->sent);
    connection->sent_at_ns[connection->sent % (uint32_t)run->depth] = now_ns();
    /* A few hundred bytes with at most `depth` unanswered always fit into the socket's send buffer. */
    ssize_t sent = send(connection->fd, connection->request.data, connection->request.length, MSG_NOSIGNAL);
    if (sent != (ssize_t)connection->request.length)
        die("a send of %zu bytes gave %zd: %s (lower --depth?)", connection->request.length, sent,
            strerror(errno));
    connection->sent++;
    run->sent++;
}

static void on_answer(struct run *run, struct connection *connection, const uint8_t *frame, size_t length) {
    if (read_u32(frame) != connection->answered) die("answers came out of order");
    int error = run->work.error_of(frame, length, run->work.context);
    if (error) die("the broker answered %s with error code %d", run->work.name, error);
    uint64_t taken_ns = now_ns() - connection->sent_at_ns[connection->answered % (uint32_t)run->depth];
    run->samples_ns[run->answered++] = taken_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)taken_ns;
    connection->answered++;
    if (run->sent < run->count) send_one(run, connection);
}

static void on_readable(struct run *run, struct connection *connection) {
    ssize_t got = recv(connection->fd, connection->buffer + connection->buffered,
                       sizeof connection->buffer - connection->buffered, MSG_DONTWAIT);
    if (got == 0) die("the broker closed a connection");
    if (got < 0) {
        if (errno == EAGAIN || errno == EINTR) return;
        die("recv: %s", strerror(errno));
    }
    connection->buffered += (size_t)got;
    size_t at = 0;
    while (connection->buffered - at >= 4) {
        size_t length = read_u32(connection->buffer + at);
        if (length < 4 || length > sizeof connection->buffer - 4) die("an answer claims %zu bytes", length);
        if (connection->buffered - at - 4 < length) break;
        on_answer(run, connection, connection->buffer + at + 4, length);
        at += 4 + length;
    }
    connection->buffered -= at;
    memmove(connection->buffer, connection->buffer + at, connection->buffered);
}

static struct connection *open_connections(struct run *run, struct target target, long count, int epoll) {
    struct connection *connections = calloc((size_t)count, sizeof *connections);
    if (!connections) die("out of memory");
    for (long i = 0; i < count; i++) {
        connections[i].fd = connect_blocking(target.host, target.port);
        run->work.build(&connections[i].request, i, run->work.context);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connections[i]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &event) < 0) die("epoll: %s", strerror(errno));
    }
    return connections;
}

void run_closed_loop(struct target target, struct work work, int argc, char **argv) {
    struct run run = {.work = work};
    run.count = argument(argc, argv, "--count", 500000, 1, 50000000);
    run.depth = argument(argc, argv, "--depth", 1, 1, MAX_DEPTH);
    long seconds = argument(argc, argv, "--seconds", 10, 1, 600);
    run.samples_ns = malloc((size_t)run.count * sizeof *run.samples_ns);
    if (!run.samples_ns) die("out of memory");
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    long open = argument(argc, argv, "--connections", 50, 1, 10000);
    struct connection *connections = open_connections(&run, target, open, epoll);

    uint64_t start_ns = now_ns(), deadline_ns = start_ns + (uint64_t)seconds * 1000000000u;
    for (long i = 0; i < open; i++)
        for (long j = 0; j < run.depth && run.sent < run.count; j++) send_one(&run, &connections[i]);
    while (run.answered < run.count && now_ns() < deadline_ns) {
        struct epoll_event events[128];
        int ready = epoll_wait(epoll, events, 128, 100);
        for (int i = 0; i < ready && run.answered < run.count; i++) on_readable(&run, events[i].data.ptr);
    }
    double taken_s = (double)(now_ns() - start_ns) / 1e9;
    printf("{\"requests\": %ld, \"seconds\": %.4f, \"requests_per_s\": %.1f, ", run.answered, taken_s,
           (double)run.answered / taken_s);
    print_percentiles(run.samples_ns, (size_t)run.answered);
    printf("}\n");
    free(connections);
    free(run.samples_ns);
    close(epoll);
}
