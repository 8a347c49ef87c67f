/*
 * The little of Kafka's wire format that the load generators need: Produce, Fetch and OffsetCommit requests by
 * topic name, one-record batches with a valid CRC-32C, and latency percentiles. Blocking helpers are for set-up
 * only; nothing here may allocate or checksum on the measured path.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define API_PRODUCE 0
#define API_FETCH 1
#define API_OFFSET_COMMIT 8
#define API_API_VERSIONS 18
#define PRODUCE_VERSION 11 /* flexible, the topic is named, not given by id */
#define FETCH_VERSION 12   /* the last version that names the topic */
#define OFFSET_COMMIT_VERSION 9 /* likewise */

/* A request kept ready to send. The correlation id stands right after size, key and version. */
struct request {
    uint8_t data[4096];
    size_t length;
    size_t offset_at; /* where a Fetch or an OffsetCommit carries its offset */
};

/* What both generators need to know about where to send. */
struct target {
    const char *host;
    int port;
    const char *topic;
};

uint64_t now_ns(void);
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
long argument(int argc, char **argv, const char *name, long fallback, long low, long high);
const char *text_argument(int argc, char **argv, const char *name, const char *fallback);
struct target target_arguments(int argc, char **argv);

int connect_blocking(const char *host, int port);
/* To the leader of a partition: --ports P,P,... names its port, where the partitions have several. */
int connect_leader(int argc, char **argv, struct target target, int partition);
void set_nonblocking(int fd);
void send_all(int fd, const void *data, size_t length);
void receive_all(int fd, void *data, size_t length);

uint32_t crc32c(const uint8_t *data, size_t length);
uint32_t read_u32(const uint8_t *at);
uint64_t read_u64(const uint8_t *at);
void write_u32(uint8_t *at, uint32_t value);
void write_u64(uint8_t *at, uint64_t value);
uint32_t read_uvarint(const uint8_t **at, const uint8_t *end);

void build_produce(struct request *out, const char *topic, int partition, int acks, int value_bytes);
/* A whole request with one batch of many records, acks=1, in memory of its own. */
uint8_t *build_bulk_produce(const char *topic, int partition, int records, int value_bytes, size_t *length);
void build_fetch(struct request *out, const char *topic, int partition, int max_wait_ms, int max_bytes);
void build_offset_commit(struct request *out, const char *group, const char *topic, int partition);
void build_api_versions(struct request *out);
void set_correlation(struct request *request, uint32_t correlation_id);
int produce_error(const uint8_t *frame, size_t length, const char *topic);
int offset_commit_error(const uint8_t *frame, size_t length, const char *topic);

/* Sorts the samples (nanoseconds) and prints `"p50_ms": .., "p99_ms": .., "p999_ms": .., "max_ms": ..`. */
void print_percentiles(uint32_t *samples_ns, size_t count);

#endif
