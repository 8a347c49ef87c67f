/*
 * End to end at a fixed rate: one connection produces single records (acks=all, no linger), another
 * long-polls Fetch; the time from the send of a record to its arrival at the consumer is measured. Prints one
 * line of JSON. The sender never waits for answers, so a slow broker cannot slow the load down and look better.
 * Usage: e2e --port P --topic T [--host H] [--rate 1000] [--count 10000] [--warmup 1000] [--size 100]
 *        [--seconds 60]
 * The topic must be new and empty: records are recognised by their offset in partition 0.
 */
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)
#define FETCH_MAX_BYTES (BUFFER_BYTES / 2)

struct stream {
    int fd;
    size_t buffered;
    uint8_t buffer[BUFFER_BYTES];
};

struct run {
    struct target target;
    long count, warmup, sent, received, acknowledged;
    uint64_t *sent_at_ns;
    uint32_t *samples_ns;
    struct request produce, fetch;
    struct stream producer, consumer;
};

static void send_fetch(struct run *run) {
    write_u64(run->fetch.data + run->fetch.offset_at, (uint64_t)run->received);
    set_correlation(&run->fetch, (uint32_t)run->received);
    send_all(run->consumer.fd, run->fetch.data, run->fetch.length);
}

static void send_record(struct run *run) {
    set_correlation(&run->produce, (uint32_t)run->sent);
    run->sent_at_ns[run->sent++] = now_ns();
    send_all(run->producer.fd, run->produce.data, run->produce.length);
}

static void on_produced(struct run *run, const uint8_t *frame, size_t length) {
    int error = produce_error(frame, length, run->target.topic);
    if (error) die("the broker answered Produce with error code %d", error);
    run->acknowledged++;
}

/* Steps over the answer's fixed part to the one partition's records; every batch holds one record. */
static void on_fetched(struct run *run, const uint8_t *frame, size_t length) {
    uint64_t arrived_ns = now_ns();
    const uint8_t *at = frame + 4 + 1 + 4, *end = frame + length;
    int error = length < 11 ? 0 : (int16_t)(at[0] << 8 | at[1]);
    if (error) die("the broker answered Fetch with error code %d", error);
    if (length < 54 + strlen(run->target.topic)) die("a Fetch answer of %zu bytes is too short", length);
    at += 2 + 4;                               /* error, session id */
    at += 1 + 1 + strlen(run->target.topic);   /* topic count, name */
    at += 1 + 4;                               /* partition count, index */
    error = (int16_t)(at[0] << 8 | at[1]);
    if (error) die("the broker answered Fetch with error code %d for the partition", error);
    at += 2 + 8 + 8 + 8;                       /* error, high watermark, last stable and log start offset */
    if (read_uvarint(&at, end) > 1) die("unexpected aborted transactions");
    at += 4;                                   /* preferred read replica */
    uint32_t bytes = read_uvarint(&at, end);
    if (bytes > 0 && (size_t)(end - at) < bytes - 1) die("a Fetch answer ends inside its records");
    for (end = at + (bytes ? bytes - 1 : 0); end - at >= 61; at += 12 + read_u32(at + 8)) {
        uint64_t offset = read_u64(at);
        if (offset >= (uint64_t)run->sent) die("offset %llu was never produced", (unsigned long long)offset);
        if (offset != (uint64_t)run->received) continue;
        uint64_t taken_ns = arrived_ns - run->sent_at_ns[offset];
        run->samples_ns[offset] = taken_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)taken_ns;
        run->received++;
    }
    if (run->received < run->count) send_fetch(run);
}

static void on_readable(struct run *run, struct stream *stream,
                        void (*handle)(struct run *, const uint8_t *, size_t)) {
    size_t room = sizeof stream->buffer - stream->buffered;
    ssize_t got = recv(stream->fd, stream->buffer + stream->buffered, room, MSG_DONTWAIT);
    if (got == 0) die("the broker closed a connection");
    if (got < 0) {
        if (errno == EAGAIN || errno == EINTR) return;
        die("recv: %s", strerror(errno));
    }
    stream->buffered += (size_t)got;
    size_t at = 0;
    while (stream->buffered - at >= 4) {
        size_t length = read_u32(stream->buffer + at);
        if (length < 4 || length > sizeof stream->buffer - 4) die("an answer claims %zu bytes", length);
        if (stream->buffered - at - 4 < length) break;
        handle(run, stream->buffer + at + 4, length);
        at += 4 + length;
    }
    stream->buffered -= at;
    memmove(stream->buffer, stream->buffer + at, stream->buffered);
}

static int open_ticker(long rate) {
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct timespec interval = {.tv_sec = rate == 1, .tv_nsec = 1000000000 / rate % 1000000000};
    struct itimerspec every = {.it_interval = interval, .it_value = interval};
    if (timer < 0 || timerfd_settime(timer, 0, &every, NULL) < 0) die("timerfd: %s", strerror(errno));
    return timer;
}

static void on_tick(struct run *run, int timer) {
    uint64_t due;
    if (read(timer, &due, sizeof due) != sizeof due) return;
    for (; due > 0 && run->sent < run->count; due--) send_record(run);
}

int main(int argc, char **argv) {
    static struct run run; /* two megabytes of buffers: too much for the stack */
    run.target = target_arguments(argc, argv);
    run.warmup = argument(argc, argv, "--warmup", 1000, 0, 1000000);
    run.count = run.warmup + argument(argc, argv, "--count", 10000, 1, 1000000);
    long rate = argument(argc, argv, "--rate", 1000, 1, 100000);
    long seconds = argument(argc, argv, "--seconds", 60, 1, 600);
    run.sent_at_ns = calloc((size_t)run.count, sizeof *run.sent_at_ns);
    run.samples_ns = calloc((size_t)run.count, sizeof *run.samples_ns);
    if (!run.sent_at_ns || !run.samples_ns) die("out of memory");
    build_produce(&run.produce, run.target.topic, 0, -1, (int)argument(argc, argv, "--size", 100, 1, 2000));
    build_fetch(&run.fetch, run.target.topic, 0, 500, FETCH_MAX_BYTES);
    run.producer.fd = connect_blocking(run.target.host, run.target.port);
    run.consumer.fd = connect_blocking(run.target.host, run.target.port);
    send_fetch(&run);

    uint64_t start_ns = now_ns(), deadline_ns = start_ns + (uint64_t)seconds * 1000000000u;
    int timer = open_ticker(rate);
    while (run.received < run.count || run.acknowledged < run.count) {
        if (now_ns() > deadline_ns)
            die("only %ld of %ld records arrived within %ld s", run.received, run.count, seconds);
        struct pollfd ready[3] = {{.fd = run.consumer.fd, .events = POLLIN},
                                  {.fd = run.producer.fd, .events = POLLIN},
                                  {.fd = run.sent < run.count ? timer : -1, .events = POLLIN}};
        if (poll(ready, 3, 1000) < 0 && errno != EINTR) die("poll: %s", strerror(errno));
        if (ready[0].revents) on_readable(&run, &run.consumer, on_fetched);
        if (ready[1].revents) on_readable(&run, &run.producer, on_produced);
        if (ready[2].revents) on_tick(&run, timer);
    }
    double taken_s = (double)(now_ns() - start_ns) / 1e9;
    printf("{\"messages\": %ld, \"seconds\": %.4f, ", run.count - run.warmup, taken_s);
    print_percentiles(run.samples_ns + run.warmup, (size_t)(run.count - run.warmup));
    printf("}\n");
    return 0;
}
