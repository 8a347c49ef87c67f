/*
 * Consumes one topic to its end with several librdkafka consumers side by side, one partition each: as
 * members of a group, or, without --group, each with the partition that it takes itself. Nothing else
 * differs, so the two rates show what the group costs. Prints one line of JSON (messages, bytes, seconds).
 * Usage: consumers --port P --topic T --messages N [--group G] [--host H] [--consumers 4]
 *        [--commit-ms 500] [--isolation read_committed] [--seconds 120]
 * The topic has as many partitions as there are consumers. Joining does not count: the clock starts when
 * every consumer has its partition, and all of them begin to fetch at that moment. It stops at the Nth
 * message.
 */
#include "client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONSUMERS_MAX 64
#define BATCH 1000

struct consumer {
    struct run *run;
    rd_kafka_t *handle;
    rd_kafka_queue_t *queue;
    pthread_t thread;
    rd_kafka_topic_partition_list_t *share; /* fetched from only when the run starts */
    int has_its_share, is_running;
};

struct run {
    struct target target;
    const char *group, *isolation;
    long count, messages;
    uint64_t deadline_ns;
    atomic_long with_share, received, received_bytes;
    atomic_int started, ended;
    struct consumer consumers[CONSUMERS_MAX];
};

/* Remembers the partitions and takes none of them yet. A share is exactly one partition. */
static void get(struct consumer *consumer, const rd_kafka_topic_partition_list_t *partitions) {
    if (consumer->is_running) die("the group was rebalanced in the middle of the measurement");
    if (consumer->share) rd_kafka_topic_partition_list_destroy(consumer->share);
    consumer->share = rd_kafka_topic_partition_list_copy(partitions);
    for (int i = 0; i < partitions->cnt; i++) consumer->share->elems[i].offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_topic_partition_list_t *nothing = rd_kafka_topic_partition_list_new(0);
    if (rd_kafka_assign(consumer->handle, nothing)) die("cannot answer a rebalance");
    rd_kafka_topic_partition_list_destroy(nothing);
    int has_its_share = partitions->cnt == 1;
    atomic_fetch_add(&consumer->run->with_share, has_its_share - consumer->has_its_share);
    consumer->has_its_share = has_its_share;
}

static void on_rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t event,
                         rd_kafka_topic_partition_list_t *partitions, void *context) {
    struct consumer *consumer = context;
    if (event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        get(consumer, partitions);
        return;
    }
    if (consumer->is_running && !atomic_load(&consumer->run->ended)) die("partitions were taken away");
    rd_kafka_assign(handle, NULL);
    atomic_fetch_sub(&consumer->run->with_share, consumer->has_its_share);
    consumer->has_its_share = 0;
}

static void count_messages(struct run *run, rd_kafka_message_t **messages, ssize_t count) {
    long received = 0, bytes = 0;
    for (ssize_t i = 0; i < count; i++) {
        if (messages[i]->err) die("a consumer was told: %s", rd_kafka_message_errstr(messages[i]));
        received++;
        bytes += (long)messages[i]->len;
        rd_kafka_message_destroy(messages[i]);
    }
    atomic_fetch_add(&run->received_bytes, bytes);
    if (atomic_fetch_add(&run->received, received) + received >= run->messages) atomic_store(&run->ended, 1);
}

static void *consume(void *context) {
    struct consumer *consumer = context;
    struct run *run = consumer->run;
    rd_kafka_message_t *messages[BATCH];
    while (!atomic_load(&run->ended)) {
        if (now_ns() > run->deadline_ns) die("only %ld messages came in time", atomic_load(&run->received));
        if (atomic_load(&run->started) && !consumer->is_running) {
            consumer->is_running = 1;
            if (rd_kafka_assign(consumer->handle, consumer->share)) die("cannot assign partitions");
        }
        ssize_t count = rd_kafka_consume_batch_queue(consumer->queue, 2, messages, BATCH);
        if (count > 0) count_messages(run, messages, count);
    }
    return NULL;
}

static rd_kafka_t *new_consumer(struct consumer *consumer, const char *commit_ms) {
    struct run *run = consumer->run;
    rd_kafka_conf_t *conf = new_conf(run->target, consumer);
    configure(conf, "isolation.level", run->isolation);
    /* When its queue is full the client pauses; the default second would measure the pause. */
    configure(conf, "fetch.queue.backoff.ms", "1");
    configure(conf, "group.id", run->group ? run->group : "none"); /* the library wants one */
    configure(conf, "enable.auto.commit", run->group ? "true" : "false");
    configure(conf, "auto.commit.interval.ms", commit_ms);
    configure(conf, "heartbeat.interval.ms", "500"); /* while it forms: what the others did is learnt soon */
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_t *handle = new_client(RD_KAFKA_CONSUMER, conf);
    rd_kafka_poll_set_consumer(handle);
    return handle;
}

static void start(struct consumer *consumer, int number, const char *commit_ms) {
    struct run *run = consumer->run;
    consumer->handle = new_consumer(consumer, commit_ms);
    consumer->queue = rd_kafka_queue_get_consumer(consumer->handle);
    /* A member of a group has learnt where the partitions are when it gets one: so shall the others. */
    known_topic(consumer->handle, run->target.topic);
    rd_kafka_topic_partition_list_t *wanted = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(wanted, run->target.topic, run->group ? RD_KAFKA_PARTITION_UA : number);
    if (!run->group)
        get(consumer, wanted);
    else if (rd_kafka_subscribe(consumer->handle, wanted))
        die("cannot subscribe");
    rd_kafka_topic_partition_list_destroy(wanted);
    if (pthread_create(&consumer->thread, NULL, consume, consumer)) die("no thread");
}

/* The clock's start: everyone has its share, and has had it for a moment, so that connections are open. */
static void wait_for_shares(struct run *run) {
    struct timespec moment = {.tv_nsec = 20000000};
    for (int steady = 0; steady < 25; steady++) {
        if (now_ns() > run->deadline_ns) die("the group did not become stable in time");
        if (atomic_load(&run->with_share) != run->count) steady = 0;
        nanosleep(&moment, NULL);
    }
}

int main(int argc, char **argv) {
    static struct run run;
    run.target = target_arguments(argc, argv);
    run.group = text_argument(argc, argv, "--group", "");
    if (!*run.group) run.group = NULL;
    run.isolation = text_argument(argc, argv, "--isolation", "read_committed");
    run.count = argument(argc, argv, "--consumers", 4, 1, CONSUMERS_MAX);
    run.messages = argument(argc, argv, "--messages", 0, 1, 100000000);
    run.deadline_ns = now_ns() + (uint64_t)argument(argc, argv, "--seconds", 120, 1, 600) * 1000000000u;
    const char *commit_ms = text_argument(argc, argv, "--commit-ms", "500");
    for (int i = 0; i < run.count; i++) {
        run.consumers[i].run = &run;
        start(&run.consumers[i], i, commit_ms);
    }
    wait_for_shares(&run);
    uint64_t start_ns = now_ns();
    atomic_store(&run.started, 1);
    for (int i = 0; i < run.count; i++) pthread_join(run.consumers[i].thread, NULL);
    double taken_s = (double)(now_ns() - start_ns) / 1e9;
    printf("{\"messages\": %ld, \"bytes\": %ld, \"seconds\": %.4f}\n", atomic_load(&run.received),
           atomic_load(&run.received_bytes), taken_s);
    fflush(stdout);
    /* A group must not wait for the sessions of members that have gone. The rest ends with the process. */
    for (int i = 0; i < run.count && run.group; i++) rd_kafka_consumer_close(run.consumers[i].handle);
    _exit(0);
}
