/*
 * What the generators that use librdkafka have in common. Only these may include it: the others are built
 * without the library.
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include "wire.h"

#include <rdkafka.h>
#include <stdio.h>

static inline void configure(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[256];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) die("%s", error);
}

/* Settings that know where the broker is, and hand `context` to callbacks. */
static inline rd_kafka_conf_t *new_conf(struct target target, void *context) {
    char address[64];
    snprintf(address, sizeof address, "%s:%d", target.host, target.port);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    configure(conf, "bootstrap.servers", address);
    configure(conf, "broker.address.family", "v4");
    rd_kafka_conf_set_opaque(conf, context);
    return conf;
}

static inline rd_kafka_t *new_client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char error[256];
    rd_kafka_t *handle = rd_kafka_new(type, conf, error, sizeof error);
    if (!handle) die("no client: %s", error);
    return handle;
}

static inline void check(rd_kafka_error_t *error, const char *what) {
    if (error) die("%s: %s", what, rd_kafka_error_string(error));
}

/* Waits until the client knows where the partitions are. */
static inline rd_kafka_topic_t *known_topic(rd_kafka_t *handle, const char *name) {
    rd_kafka_topic_t *topic = rd_kafka_topic_new(handle, name, NULL);
    const struct rd_kafka_metadata *metadata;
    if (rd_kafka_metadata(handle, 0, topic, &metadata, 10000)) die("no metadata");
    rd_kafka_metadata_destroy(metadata); /* the handle keeps what it needs */
    return topic;
}

#endif
