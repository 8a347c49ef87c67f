/*
 * Bulk produce with an idempotent librdkafka producer, in transactions of --transaction-ms each; with 0 in
 * none. Nothing else differs, so the two rates show what transactions cost. Prints one line of JSON (messages,
 * bytes, seconds, transactions).
 * Usage: txn_produce --port P --topic T --messages N [--host H] [--size 1024] [--transaction-ms 100]
 *        [--seconds 120]
 * Records go to the partitions by librdkafka's own partitioner. A first record, in a transaction of its own,
 * is not counted: the clock starts when the producer has its id and its connections, and stops when the last
 * record is acknowledged, or committed.
 */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 60000

struct run {
    struct target target;
    long messages; /* to be sent by now */
    long size, sent, delivered, transactions;
    uint64_t transaction_ns, deadline_ns;
    rd_kafka_t *handle;
    rd_kafka_topic_t *topic;
};

static void on_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *context) {
    (void)handle;
    if (message->err) die("a record was not delivered: %s", rd_kafka_err2str(message->err));
    ((struct run *)context)->delivered++;
}

static rd_kafka_t *new_producer(struct run *run) {
    rd_kafka_conf_t *conf = new_conf(run->target, run);
    configure(conf, "enable.idempotence", "true");
    configure(conf, "linger.ms", "5");
    configure(conf, "batch.num.messages", "10000");
    /* A commit waits for what is queued: a queue without bound would make every transaction a long one. */
    configure(conf, "queue.buffering.max.kbytes", "16384");
    if (run->transaction_ns) configure(conf, "transactional.id", run->target.topic);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    return new_client(RD_KAFKA_PRODUCER, conf);
}

/* Queues records until there are enough or the time is over. */
static void produce_until(struct run *run, char *value, uint64_t end_ns) {
    while (run->sent < run->messages) {
        if (rd_kafka_produce(run->topic, RD_KAFKA_PARTITION_UA, 0, value, (size_t)run->size, NULL, 0, NULL) ==
            0) {
            run->sent++;
            if (run->sent % 64) continue; /* the clock and the callbacks cost more than a record */
            rd_kafka_poll(run->handle, 0);
        } else if (rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            rd_kafka_poll(run->handle, 1);
        } else {
            die("a record was not taken: %s", rd_kafka_err2str(rd_kafka_last_error()));
        }
        uint64_t now = now_ns();
        if (now > run->deadline_ns) die("only %ld records were delivered in time", run->delivered);
        if (now >= end_ns) return;
    }
}

/* Until there are so many, in transactions or in none. */
static void produce_all(struct run *run, char *value, long messages) {
    run->messages = messages;
    if (!run->transaction_ns) {
        produce_until(run, value, UINT64_MAX);
        if (rd_kafka_flush(run->handle, TIMEOUT_MS)) die("records are left over");
        return;
    }
    while (run->sent < run->messages) {
        check(rd_kafka_begin_transaction(run->handle), "no transaction begins");
        produce_until(run, value, now_ns() + run->transaction_ns);
        check(rd_kafka_commit_transaction(run->handle, TIMEOUT_MS), "a transaction was not committed");
        run->transactions++;
    }
}

int main(int argc, char **argv) {
    static struct run run;
    run.target = target_arguments(argc, argv);
    long messages = argument(argc, argv, "--messages", 0, 1, 100000000);
    run.size = argument(argc, argv, "--size", 1024, 1, 1000000);
    run.transaction_ns = (uint64_t)argument(argc, argv, "--transaction-ms", 100, 0, 60000) * 1000000u;
    run.deadline_ns = now_ns() + (uint64_t)argument(argc, argv, "--seconds", 120, 1, 600) * 1000000000u;
    char *value = calloc((size_t)run.size, 1);
    if (!value) die("out of memory");
    run.handle = new_producer(&run);
    if (run.transaction_ns) check(rd_kafka_init_transactions(run.handle, TIMEOUT_MS), "no producer id");
    run.topic = known_topic(run.handle, run.target.topic);
    produce_all(&run, value, 1);
    run.transactions = 0;
    uint64_t start_ns = now_ns();
    produce_all(&run, value, 1 + messages);
    double taken_s = (double)(now_ns() - start_ns) / 1e9;
    if (run.delivered != 1 + messages) die("%ld of %ld records were delivered", run.delivered, messages);
    printf("{\"messages\": %ld, \"bytes\": %ld, \"seconds\": %.4f, \"transactions\": %ld}\n", messages,
           messages * run.size, taken_s, run.transactions);
    fflush(stdout);
    _exit(0); /* what the handle holds ends with the process */
}
