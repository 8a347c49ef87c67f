/*
 * Reads a topic from its start as fast as the broker gives it: one connection for each partition, one Fetch in
 * flight on each, and of what comes only the headers of the batches are looked at. Prints one line of JSON.
 * Usage: fetches --port P --topic T --messages N [--host H] [--ports P,P,..] [--partitions 4] [--seconds 60]
 * Consumers that unpack every record are busy with that; this one leaves the machine to the broker.
 */
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FETCH_MAX_BYTES (1 << 20) /* of one partition: the default of every client */
#define BUFFER_BYTES (FETCH_MAX_BYTES + (64 << 10))
#define PARTITIONS_MAX 64
#define BATCH_HEADER_BYTES 61

struct reader {
    struct request fetch;
    uint64_t next_offset;
    size_t filled;
    uint8_t buffer[BUFFER_BYTES];
};

struct totals {
    uint64_t messages, bytes;
};

static void ask(struct reader *reader, int fd) {
    write_u64(reader->fetch.data + reader->fetch.offset_at, reader->next_offset);
    send_all(fd, reader->fetch.data, reader->fetch.length);
}

/* Steps from batch to batch: where the next fetch begins, and how many messages were new. */
static void walk(struct reader *reader, const uint8_t *at, const uint8_t *end, struct totals *totals) {
    while (end - at >= BATCH_HEADER_BYTES) {
        uint64_t after = read_u64(at) + read_u32(at + 23) + 1;
        size_t size = 12 + read_u32(at + 8);
        if (size > (size_t)(end - at)) return; /* the last batch was cut off by the limit */
        if (after > reader->next_offset) {
            totals->messages += after - reader->next_offset;
            totals->bytes += size;
            reader->next_offset = after;
        }
        at += size;
    }
}

static void take(struct reader *reader, const char *topic, struct totals *totals) {
    const uint8_t *end = reader->buffer + reader->filled;
    /* size, correlation id, tagged fields, throttle time, error, session, topic count, name, partition count,
     * index: up to the partition's error */
    const uint8_t *at = reader->buffer + 4 + 4 + 1 + 4 + 2 + 4 + 1 + 1 + strlen(topic) + 1 + 4;
    if (end - at < 2 + 24 + 1 + 4 + 1) die("a Fetch answer is too short");
    if (at[0] || at[1]) die("Fetch was answered with error %d", at[0] << 8 | at[1]);
    at += 2 + 24;                 /* error, high watermark, last stable offset, log start offset */
    if (*at > 1) die("a Fetch answer lists aborted transactions");
    at += 1 + 4;                  /* no aborted transactions, preferred replica */
    uint32_t length = read_uvarint(&at, end);
    if (length > (size_t)(end - at) + 1) die("a Fetch answer ends inside its records");
    if (length > 1) walk(reader, at, at + length - 1, totals);
}

/* Whether a whole answer has come. */
static int receive(struct reader *reader, int fd) {
    ssize_t got = recv(fd, reader->buffer + reader->filled, BUFFER_BYTES - reader->filled, 0);
    if (got == 0) die("the broker closed the connection");
    if (got < 0) {
        if (errno == EAGAIN || errno == EINTR) return 0;
        die("recv: %s", strerror(errno));
    }
    reader->filled += (size_t)got;
    if (reader->filled < 4) return 0;
    size_t whole = 4 + (size_t)read_u32(reader->buffer);
    if (whole > BUFFER_BYTES) die("a Fetch answer of %zu bytes is larger than what was asked for", whole);
    return reader->filled >= whole;
}

int main(int argc, char **argv) {
    struct target target = target_arguments(argc, argv);
    uint64_t wanted = (uint64_t)argument(argc, argv, "--messages", 0, 1, 1000000000);
    int partitions = (int)argument(argc, argv, "--partitions", 4, 1, PARTITIONS_MAX);
    uint64_t limit_ns = (uint64_t)argument(argc, argv, "--seconds", 60, 1, 600) * 1000000000u;

    struct pollfd sockets[PARTITIONS_MAX];
    struct reader *readers = calloc((size_t)partitions, sizeof *readers);
    if (!readers) die("out of memory");
    memset(readers, 0, (size_t)partitions * sizeof *readers); /* touched before the clock runs */
    for (int i = 0; i < partitions; i++) {
        build_fetch(&readers[i].fetch, target.topic, i, 500, FETCH_MAX_BYTES);
        sockets[i] = (struct pollfd){.fd = connect_leader(argc, argv, target, i), .events = POLLIN};
    }

    struct totals totals = {0};
    uint64_t started = now_ns();
    for (int i = 0; i < partitions; i++) {
        ask(&readers[i], sockets[i].fd);
        set_nonblocking(sockets[i].fd);
    }
    while (totals.messages < wanted) {
        if (now_ns() - started > limit_ns) die("only %lu messages came in time", (unsigned long)totals.messages);
        if (poll(sockets, (nfds_t)partitions, 1000) < 0 && errno != EINTR) die("poll: %s", strerror(errno));
        for (int i = 0; i < partitions; i++) {
            if (!sockets[i].revents || !receive(&readers[i], sockets[i].fd)) continue;
            take(&readers[i], target.topic, &totals);
            readers[i].filled = 0;
            ask(&readers[i], sockets[i].fd);
        }
    }
    double seconds = (double)(now_ns() - started) / 1e9;
    printf("{\"messages\": %lu, \"bytes\": %lu, \"seconds\": %.6f}\n", (unsigned long)totals.messages,
           (unsigned long)totals.bytes, seconds);
    free(readers);
    return 0;
}
