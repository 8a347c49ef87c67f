/*
 * OffsetCommit with one partition per request over many connections, each with a fixed number of requests in
 * flight; prints one line of JSON (requests, seconds, requests_per_s, latency percentiles).
 * Usage: commits --port P --topic T --group G [--host H] [--connections 50] [--depth 1] [--partitions 4]
 *        [--groups 10] [--count 500000] [--seconds 10]
 * Ends at --count answers or after --seconds, whichever is first. The commits name no member, as those of a
 * consumer that assigns its partitions itself. The groups are G-0, G-1 ...; connection i commits partition
 * i / groups (modulo --partitions) of group i % groups, an offset that grows by one each time.
 */
#include "closed_loop.h"

#include <stdio.h>

struct commit {
    const char *topic, *group;
    long partitions, groups;
};

static void build(struct request *request, long connection, void *context) {
    const struct commit *commit = context;
    char group[128];
    snprintf(group, sizeof group, "%s-%ld", commit->group, connection % commit->groups);
    long partition = connection / commit->groups % commit->partitions;
    build_offset_commit(request, group, commit->topic, (int)partition);
}

static void before_send(struct request *request, uint32_t number) {
    write_u64(request->data + request->offset_at, number);
}

static int error_of(const uint8_t *frame, size_t length, void *context) {
    return offset_commit_error(frame, length, ((const struct commit *)context)->topic);
}

int main(int argc, char **argv) {
    struct target target = target_arguments(argc, argv);
    struct commit commit = {
        .topic = target.topic,
        .group = text_argument(argc, argv, "--group", NULL),
        .partitions = argument(argc, argv, "--partitions", 4, 1, 10000),
        .groups = argument(argc, argv, "--groups", 10, 1, 10000),
    };
    struct work work = {.name = "OffsetCommit",
                        .context = &commit,
                        .build = build,
                        .before_send = before_send,
                        .error_of = error_of};
    run_closed_loop(target, work, argc, argv);
    return 0;
}
