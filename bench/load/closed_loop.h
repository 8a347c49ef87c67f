/*
 * Small requests over many connections, each with a fixed number in flight: the engine of those generators
 * that ask again as soon as they are answered. It must know nothing of what the requests mean.
 */
#ifndef BENCH_CLOSED_LOOP_H
#define BENCH_CLOSED_LOOP_H

#include "wire.h"

/* What is sent and how an answer is judged; `context` is handed back to each function. */
struct work {
    const char *name; /* of the request, for messages */
    void *context;
    void (*build)(struct request *request, long connection, void *context);
    void (*before_send)(struct request *request, uint32_t number); /* NULL: every request is the same */
    int (*error_of)(const uint8_t *frame, size_t length, void *context);
};

/* Reads --connections, --depth, --count and --seconds, runs, and prints one line of JSON: requests, seconds,
 * requests_per_s, latency percentiles. Ends at --count answers or after --seconds, whichever is first. */
void run_closed_loop(struct target target, struct work work, int argc, char **argv);

#endif
