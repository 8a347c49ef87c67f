/*
 * A librdkafka producer at a fixed rate: how long each record takes from produce() to its delivery report, and
 * the longest silence between two of them. Prints one line of JSON when --seconds are over and all is delivered.
 * Usage: paced --port P --topic T [--host H] [--rate 1000] [--seconds 10] [--warmup 2] [--acks -1] [--size 100]
 *        [--linger 0]
 * Records go round the partitions. The rate never waits for answers, so a slow or dead broker cannot slow the
 * load down and look better. It prints `paced` and flushes when the warm-up is over: whoever kills a broker then
 * knows that the load is on.
 */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_MS 120000

struct run {
    struct target target;
    long rate, acks, failed, delivered;
    size_t count, room;
    uint32_t *samples_us;
    uint64_t counted_from_ns, last_ns, silence_ns;
};

static void on_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *context) {
    (void)handle;
    struct run *run = context;
    uint64_t now = now_ns(), sent_ns = (uint64_t)(uintptr_t)message->_private;
    run->delivered++;
    if (message->err) {
        run->failed++;
        return;
    }
    if (sent_ns < run->counted_from_ns) return;
    if (run->last_ns && now - run->last_ns > run->silence_ns) run->silence_ns = now - run->last_ns;
    run->last_ns = now;
    uint64_t taken_us = (now - sent_ns) / 1000;
    if (run->count < run->room) run->samples_us[run->count++] = taken_us > UINT32_MAX ? UINT32_MAX : (uint32_t)taken_us;
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double percentile_ms(const struct run *run, double share) {
    return run->count ? run->samples_us[(size_t)((double)(run->count - 1) * share)] / 1000.0 : 0.0;
}

static rd_kafka_t *new_producer(struct run *run, long linger_ms) {
    char text[32];
    rd_kafka_conf_t *conf = new_conf(run->target, run);
    snprintf(text, sizeof text, "%ld", run->acks);
    configure(conf, "acks", text);
    snprintf(text, sizeof text, "%ld", linger_ms);
    configure(conf, "linger.ms", text);
    configure(conf, "queue.buffering.max.messages", "1000000");
    configure(conf, "log_level", "0");
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    return new_client(RD_KAFKA_PRODUCER, conf);
}

int main(int argc, char **argv) {
    static struct run run;
    run.target = target_arguments(argc, argv);
    run.rate = argument(argc, argv, "--rate", 1000, 1, 100000);
    run.acks = argument(argc, argv, "--acks", -1, -1, 1);
    long seconds = argument(argc, argv, "--seconds", 10, 1, 600);
    long warmup = argument(argc, argv, "--warmup", 2, 0, 60);
    long size = argument(argc, argv, "--size", 100, 1, 1000000);
    long linger_ms = argument(argc, argv, "--linger", 0, 0, 1000);
    run.room = (size_t)(run.rate * (seconds + 1));
    run.samples_us = calloc(run.room, sizeof *run.samples_us);
    char *value = calloc((size_t)size, 1);
    if (!value || !run.samples_us) die("out of memory");
    rd_kafka_t *handle = new_producer(&run, linger_ms);
    rd_kafka_topic_t *topic = known_topic(handle, run.target.topic);
    const struct rd_kafka_metadata *metadata;
    if (rd_kafka_metadata(handle, 0, topic, &metadata, 10000)) die("no metadata");
    int partitions = metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);

    uint64_t step_ns = 1000000000u / (uint64_t)run.rate, start_ns = now_ns();
    uint64_t end_ns = start_ns + (uint64_t)(warmup + seconds) * 1000000000u;
    run.counted_from_ns = start_ns + (uint64_t)warmup * 1000000000u;
    int told = 0;
    long sent = 0;
    for (uint64_t due_ns = start_ns; due_ns < end_ns; due_ns += step_ns, sent++) {
        uint64_t now;
        while ((now = now_ns()) < due_ns) rd_kafka_poll(handle, due_ns - now > 1500000 ? 1 : 0);
        if (!told && now >= run.counted_from_ns) {
            printf("paced\n");
            fflush(stdout);
            told = 1;
        }
        if (rd_kafka_produce(topic, (int32_t)(sent % partitions), RD_KAFKA_MSG_F_COPY, value, (size_t)size, NULL, 0,
                             (void *)(uintptr_t)now))
            die("a record was not taken: %s", rd_kafka_err2str(rd_kafka_last_error()));
    }
    if (rd_kafka_flush(handle, FLUSH_MS)) die("records are left over");
    qsort(run.samples_us, run.count, sizeof *run.samples_us, ascending);
    printf("{\"messages\": %zu, \"failed\": %ld, \"silence_ms\": %.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n", run.count,
           run.failed, (double)run.silence_ns / 1e6, percentile_ms(&run, 0.5), percentile_ms(&run, 0.99));
    fflush(stdout);
    _exit(0); /* what the handle holds ends with the process */
}
