/*
 * Small transactions with librdkafka: each writes --records records over --partitions partitions and commits
 * one offset of the same topic for a group, then the transaction is committed and the next one begun. Prints
 * one line of JSON (transactions, seconds, transactions_per_s, percentiles of the time that a commit took).
 * Usage: transactions --port P --topic T --group G [--host H] [--producers 1] [--records 10] [--size 100]
 *        [--partitions 4] [--seconds 8]
 * Every producer has a thread, a transactional id (T-0, T-1 ...), and a group of its own (G-0, G-1 ...). The
 * clock starts when all of them have made a first transaction, which does not count. A commit's time is that
 * of rd_kafka_commit_transaction: from the records that are still under way to the coordinator's answer.
 */
#include "client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRODUCERS_MAX 256
#define SAMPLES_MAX 1000000 /* for each producer; the time ends it first */
#define TIMEOUT_MS 60000

struct producer {
    struct run *run;
    rd_kafka_t *handle;
    rd_kafka_consumer_group_metadata_t *group;
    pthread_t thread;
    long number, transactions;
    uint32_t *samples_ns;
};

struct run {
    struct target target;
    const char *group;
    long count, records, partitions, size;
    uint64_t duration_ns;
    char *value;
    atomic_long delivered;
    atomic_ullong deadline_ns; /* set when the clock starts */
    pthread_barrier_t ready, started;
    struct producer producers[PRODUCERS_MAX];
};

static void on_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *context) {
    (void)handle;
    if (message->err) die("a record was not delivered: %s", rd_kafka_err2str(message->err));
    atomic_fetch_add(&((struct producer *)context)->run->delivered, 1);
}

static rd_kafka_t *new_producer(struct producer *producer) {
    struct run *run = producer->run;
    char id[160];
    snprintf(id, sizeof id, "%s-%ld", run->target.topic, producer->number);
    rd_kafka_conf_t *conf = new_conf(run->target, producer);
    configure(conf, "transactional.id", id);
    configure(conf, "linger.ms", "0"); /* the commit follows at once: waiting for more would be all there is */
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    return new_client(RD_KAFKA_PRODUCER, conf);
}

static void commit_offset(struct producer *producer, long offset) {
    struct run *run = producer->run;
    rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(1);
    int partition = (int)(producer->number % run->partitions);
    rd_kafka_topic_partition_list_add(offsets, run->target.topic, partition)->offset = offset;
    rd_kafka_error_t *error =
        rd_kafka_send_offsets_to_transaction(producer->handle, offsets, producer->group, TIMEOUT_MS);
    check(error, "an offset was not committed");
    rd_kafka_topic_partition_list_destroy(offsets);
}

/* One transaction; the nanoseconds of its commit. */
static uint64_t transact(struct producer *producer, long number) {
    struct run *run = producer->run;
    check(rd_kafka_begin_transaction(producer->handle), "no transaction begins");
    for (long i = 0; i < run->records; i++) {
        int partition = (int)(i % run->partitions);
        rd_kafka_resp_err_t error = rd_kafka_producev(
            producer->handle, RD_KAFKA_V_TOPIC(run->target.topic), RD_KAFKA_V_PARTITION(partition),
            RD_KAFKA_V_VALUE(run->value, (size_t)run->size), RD_KAFKA_V_END);
        if (error) die("a record was not taken: %s", rd_kafka_err2str(error));
    }
    commit_offset(producer, number);
    uint64_t start_ns = now_ns();
    check(rd_kafka_commit_transaction(producer->handle, TIMEOUT_MS), "a transaction was not committed");
    return now_ns() - start_ns;
}

static void *work(void *context) {
    struct producer *producer = context;
    struct run *run = producer->run;
    check(rd_kafka_init_transactions(producer->handle, TIMEOUT_MS), "no producer id");
    transact(producer, 0);
    pthread_barrier_wait(&run->ready);
    pthread_barrier_wait(&run->started);
    while (now_ns() < atomic_load(&run->deadline_ns) && producer->transactions < SAMPLES_MAX) {
        uint64_t taken_ns = transact(producer, producer->transactions + 1);
        producer->samples_ns[producer->transactions++] =
            taken_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)taken_ns;
    }
    return NULL;
}

static void start(struct producer *producer) {
    char group[160];
    snprintf(group, sizeof group, "%s-%ld", producer->run->group, producer->number);
    producer->group = rd_kafka_consumer_group_metadata_new(group);
    producer->handle = new_producer(producer);
    producer->samples_ns = malloc(SAMPLES_MAX * sizeof *producer->samples_ns);
    if (!producer->samples_ns) die("out of memory");
    if (pthread_create(&producer->thread, NULL, work, producer)) die("no thread");
}

/* The samples of all producers, one behind the other. */
static uint32_t *merged(struct run *run, long transactions) {
    uint32_t *samples_ns = malloc((size_t)(transactions + 1) * sizeof *samples_ns), *at = samples_ns;
    if (!samples_ns) die("out of memory");
    for (long i = 0; i < run->count; i++) {
        struct producer *producer = &run->producers[i];
        memcpy(at, producer->samples_ns, (size_t)producer->transactions * sizeof *at);
        at += producer->transactions;
    }
    return samples_ns;
}

int main(int argc, char **argv) {
    static struct run run;
    run.target = target_arguments(argc, argv);
    run.group = text_argument(argc, argv, "--group", NULL);
    run.count = argument(argc, argv, "--producers", 1, 1, PRODUCERS_MAX);
    run.records = argument(argc, argv, "--records", 10, 1, 10000);
    run.partitions = argument(argc, argv, "--partitions", 4, 1, 10000);
    run.size = argument(argc, argv, "--size", 100, 1, 100000);
    run.duration_ns = (uint64_t)argument(argc, argv, "--seconds", 8, 1, 600) * 1000000000u;
    run.value = calloc((size_t)run.size, 1);
    if (!run.value) die("out of memory");
    pthread_barrier_init(&run.ready, NULL, (unsigned)run.count + 1);
    pthread_barrier_init(&run.started, NULL, (unsigned)run.count + 1);
    for (long i = 0; i < run.count; i++) {
        run.producers[i].run = &run;
        run.producers[i].number = i;
        start(&run.producers[i]);
    }
    pthread_barrier_wait(&run.ready);
    uint64_t start_ns = now_ns();
    atomic_store(&run.deadline_ns, start_ns + run.duration_ns);
    pthread_barrier_wait(&run.started);
    long transactions = 0;
    for (long i = 0; i < run.count; i++) {
        pthread_join(run.producers[i].thread, NULL);
        transactions += run.producers[i].transactions;
    }
    double taken_s = (double)(now_ns() - start_ns) / 1e9;
    if (atomic_load(&run.delivered) != (transactions + run.count) * run.records)
        die("%ld records were delivered in %ld transactions", atomic_load(&run.delivered), transactions);
    printf("{\"transactions\": %ld, \"seconds\": %.4f, \"transactions_per_s\": %.1f, ", transactions, taken_s,
           (double)transactions / taken_s);
    print_percentiles(merged(&run, transactions), (size_t)transactions);
    printf("}\n");
    fflush(stdout);
    _exit(0); /* what the handles hold ends with the process */
}
