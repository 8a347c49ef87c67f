/*
 * Produces large batches as fast as the broker takes them: one connection for each partition, a few requests in
 * flight on each, every one the same bytes, made before the clock runs. Prints one line of JSON.
 * Usage: bulk --port P --topic T --messages N --size B [--host H] [--ports P,P,..] [--partitions 4] [--depth 4] [--seconds 60]
 * A producer that makes and checks its records while it sends takes most of a small machine for that; this one
 * leaves the machine to the broker.
 */
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH_BYTES 1000000 /* librdkafka's default */
#define PARTITIONS_MAX 64
#define ANSWER_BYTES_MAX 1024

struct writer {
    uint8_t *frame;
    size_t length, sent;          /* of the request that is on its way */
    long requests_left, in_flight;
    size_t filled;
    uint8_t answer[ANSWER_BYTES_MAX];
};

/* Sends what the depth allows and the socket takes. */
static void push(struct writer *writer, int fd, long depth) {
    while (writer->sent || (writer->requests_left && writer->in_flight < depth)) {
        if (!writer->sent) {
            writer->requests_left--;
            writer->in_flight++;
        }
        ssize_t sent = send(fd, writer->frame + writer->sent, writer->length - writer->sent, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR) die("send: %s", strerror(errno));
            if (!writer->sent) {
                writer->requests_left++;
                writer->in_flight--;
            }
            return;
        }
        writer->sent += (size_t)sent;
        if (writer->sent == writer->length) writer->sent = 0;
    }
}

static void pull(struct writer *writer, int fd, const char *topic) {
    ssize_t got = recv(fd, writer->answer + writer->filled, ANSWER_BYTES_MAX - writer->filled, 0);
    if (got == 0) die("the broker closed the connection");
    if (got < 0) {
        if (errno == EAGAIN || errno == EINTR) return;
        die("recv: %s", strerror(errno));
    }
    writer->filled += (size_t)got;
    while (writer->filled >= 4) {
        size_t whole = 4 + (size_t)read_u32(writer->answer);
        if (whole > ANSWER_BYTES_MAX) die("an answer of %zu bytes", whole);
        if (writer->filled < whole) return;
        int error = produce_error(writer->answer + 4, whole - 4, topic);
        if (error) die("Produce was answered with error %d", error);
        writer->in_flight--;
        memmove(writer->answer, writer->answer + whole, writer->filled -= whole);
    }
}

int main(int argc, char **argv) {
    struct target target = target_arguments(argc, argv);
    long messages = argument(argc, argv, "--messages", 0, 1, 1000000000);
    int size = (int)argument(argc, argv, "--size", 1024, 1, 2000);
    int partitions = (int)argument(argc, argv, "--partitions", 4, 1, PARTITIONS_MAX);
    long depth = argument(argc, argv, "--depth", 4, 1, 1000);
    uint64_t limit_ns = (uint64_t)argument(argc, argv, "--seconds", 60, 1, 600) * 1000000000u;
    int records = BATCH_BYTES / (size + 12);
    long requests = messages / records / partitions; /* for each partition */
    if (!requests) die("--messages %ld is less than a batch for each partition", messages);

    struct pollfd sockets[PARTITIONS_MAX];
    struct writer *writers = calloc((size_t)partitions, sizeof *writers);
    if (!writers) die("out of memory");
    for (int i = 0; i < partitions; i++) {
        writers[i].frame = build_bulk_produce(target.topic, i, records, size, &writers[i].length);
        writers[i].requests_left = requests;
        sockets[i].fd = connect_leader(argc, argv, target, i);
        set_nonblocking(sockets[i].fd);
    }

    uint64_t started = now_ns();
    for (int running = partitions; running;) {
        if (now_ns() - started > limit_ns) die("not everything was acknowledged in time");
        running = 0;
        for (int i = 0; i < partitions; i++) {
            struct writer *writer = &writers[i];
            push(writer, sockets[i].fd, depth);
            sockets[i].events = writer->in_flight ? POLLIN : 0;
            if (writer->sent) sockets[i].events |= POLLOUT;
            running += writer->in_flight || writer->requests_left;
        }
        if (!running) break;
        if (poll(sockets, (nfds_t)partitions, 1000) < 0 && errno != EINTR) die("poll: %s", strerror(errno));
        for (int i = 0; i < partitions; i++)
            if (sockets[i].revents & (POLLIN | POLLERR | POLLHUP)) pull(&writers[i], sockets[i].fd, target.topic);
    }
    double seconds = (double)(now_ns() - started) / 1e9;
    long done = requests * partitions * records;
    printf("{\"messages\": %ld, \"bytes\": %ld, \"seconds\": %.6f}\n", done, done * size, seconds);
    return 0;
}
