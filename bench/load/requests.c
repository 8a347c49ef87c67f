/*
 * Produce with one small record per request over many connections, each with a fixed number of requests in
 * flight; prints one line of JSON (requests, seconds, requests_per_s, latency percentiles).
 * Usage: requests --port P --topic T [--host H] [--connections 50] [--depth 1] [--partitions 4]
 *        [--size 100] [--acks 1] [--count 500000] [--seconds 10]
 * Ends at --count answers or after --seconds, whichever is first.
 */
#include "closed_loop.h"

struct produce {
    const char *topic;
    long partitions;
    int size, acks;
};

static void build(struct request *request, long connection, void *context) {
    const struct produce *produce = context;
    int partition = (int)(connection % produce->partitions);
    build_produce(request, produce->topic, partition, produce->acks, produce->size);
}

static int error_of(const uint8_t *frame, size_t length, void *context) {
    return produce_error(frame, length, ((const struct produce *)context)->topic);
}

int main(int argc, char **argv) {
    struct target target = target_arguments(argc, argv);
    struct produce produce = {
        .topic = target.topic,
        .partitions = argument(argc, argv, "--partitions", 4, 1, 10000),
        .size = (int)argument(argc, argv, "--size", 100, 1, 2000),
        .acks = (int)argument(argc, argv, "--acks", 1, -1, 1),
    };
    if (produce.acks == 0) die("--acks 0 has no answers to count");
    struct work work = {.name = "Produce", .context = &produce, .build = build, .error_of = error_of};
    run_closed_loop(target, work, argc, argv);
    return 0;
}
