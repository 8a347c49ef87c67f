/* Implements wire.h. Must stay free of anything that depends on which broker answers. */
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

const char *text_argument(int argc, char **argv, const char *name, const char *fallback) {
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0) return argv[i + 1];
    if (!fallback) die("missing argument %s", name);
    return fallback;
}

long argument(int argc, char **argv, const char *name, long fallback, long low, long high) {
    char text[32];
    snprintf(text, sizeof text, "%ld", fallback);
    const char *given = text_argument(argc, argv, name, text);
    char *end;
    long value = strtol(given, &end, 10);
    if (*end || end == given || value < low || value > high)
        die("%s must be a number from %ld to %ld, not '%s'", name, low, high, given);
    return value;
}

struct target target_arguments(int argc, char **argv) {
    struct target target = {
        .host = text_argument(argc, argv, "--host", "127.0.0.1"),
        .port = (int)argument(argc, argv, "--port", 0, 1, 65535),
        .topic = text_argument(argc, argv, "--topic", NULL),
    };
    /* One length byte in the compact string, one in the compact arrays: keeps every offset below fixed. */
    if (strlen(target.topic) > 100) die("--topic is longer than 100 characters");
    return target;
}

/* ---- sockets ---------------------------------------------------------------------------------- */

int connect_blocking(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) die("'%s' is not an IPv4 address", host);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        die("connect to %s:%d: %s", host, port, strerror(errno));
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct timeval limit = {.tv_sec = 30};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return fd;
}

int connect_leader(int argc, char **argv, struct target target, int partition) {
    const char *at = text_argument(argc, argv, "--ports", "");
    if (!*at) return connect_blocking(target.host, target.port);
    for (int i = 0; i < partition; i++) {
        at = strchr(at, ',');
        if (!at++) die("--ports names no port for partition %d", partition);
    }
    return connect_blocking(target.host, atoi(at));
}

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

void send_all(int fd, const void *data, size_t length) {
    const uint8_t *at = data;
    while (length) {
        ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
        if (sent < 0) die("send: %s", strerror(errno));
        at += sent;
        length -= (size_t)sent;
    }
}

void receive_all(int fd, void *data, size_t length) {
    uint8_t *at = data;
    while (length) {
        ssize_t got = recv(fd, at, length, 0);
        if (got < 0) die("recv: %s", strerror(errno));
        if (got == 0) die("the broker closed the connection");
        at += got;
        length -= (size_t)got;
    }
}

/* ---- numbers ---------------------------------------------------------------------------------- */

uint32_t crc32c(const uint8_t *data, size_t length) {
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
    }
    return ~crc;
}

uint32_t read_u32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

uint64_t read_u64(const uint8_t *at) { return (uint64_t)read_u32(at) << 32 | read_u32(at + 4); }

void write_u32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

void write_u64(uint8_t *at, uint64_t value) {
    write_u32(at, (uint32_t)(value >> 32));
    write_u32(at + 4, (uint32_t)value);
}

uint32_t read_uvarint(const uint8_t **at, const uint8_t *end) {
    uint32_t value = 0;
    for (int shift = 0; shift < 35 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    die("a response ends inside a varint");
}

/* ---- requests --------------------------------------------------------------------------------- */

static void put_bytes(struct request *out, const void *data, size_t length) {
    if (out->length + length > sizeof out->data) die("the request is larger than its buffer");
    memcpy(out->data + out->length, data, length);
    out->length += length;
}

static void put_int(struct request *out, uint64_t value, int bytes) {
    uint8_t text[8];
    write_u64(text, value);
    put_bytes(out, text + 8 - bytes, (size_t)bytes);
}

static void put_uvarint(struct request *out, uint32_t value) {
    while (value >= 0x80) {
        put_int(out, (value & 0x7f) | 0x80, 1);
        value >>= 7;
    }
    put_int(out, value, 1);
}

static void put_varint(struct request *out, int32_t value) {
    put_uvarint(out, ((uint32_t)value << 1) ^ (uint32_t)(value >> 31));
}

static void put_compact_string(struct request *out, const char *text) {
    put_uvarint(out, (uint32_t)strlen(text) + 1);
    put_bytes(out, text, strlen(text));
}

static void begin(struct request *out, int api_key, int version, int flexible) {
    out->length = 0;
    put_int(out, 0, 4); /* the size, filled in by finish() */
    put_int(out, (uint64_t)api_key, 2);
    put_int(out, (uint64_t)version, 2);
    put_int(out, 0, 4); /* the correlation id */
    put_int(out, 5, 2);
    put_bytes(out, "bench", 5);
    if (flexible) put_uvarint(out, 0);
}

static void finish(struct request *out) { write_u32(out->data, (uint32_t)out->length - 4); }

static void put_record(struct request *out, int offset_delta, int value_bytes) {
    struct request body = {.length = 0};
    put_int(&body, 0, 1);   /* attributes */
    put_varint(&body, 0);   /* timestamp delta */
    put_varint(&body, offset_delta);
    put_varint(&body, -1);  /* null key */
    put_varint(&body, value_bytes);
    for (int i = 0; i < value_bytes; i++) put_int(&body, (uint64_t)('a' + i % 26), 1);
    put_varint(&body, 0);   /* no headers */
    put_varint(out, (int32_t)body.length);
    put_bytes(out, body.data, body.length);
}

/* All of a batch but its records, its length and its CRC. */
static void put_batch_header(struct request *out, int records) {
    uint64_t now_ms = (uint64_t)time(NULL) * 1000u;
    put_int(out, 0, 8);                   /* base offset */
    put_int(out, 0, 4);                   /* batch length, by finish_batch() */
    put_int(out, (uint64_t)-1, 4);        /* partition leader epoch */
    put_int(out, 2, 1);                   /* magic */
    put_int(out, 0, 4);                   /* CRC, by finish_batch() */
    put_int(out, 0, 2);                   /* attributes */
    put_int(out, (uint64_t)records - 1, 4); /* last offset delta */
    put_int(out, now_ms, 8);              /* base timestamp */
    put_int(out, now_ms, 8);              /* max timestamp */
    put_int(out, (uint64_t)-1, 8);        /* producer id */
    put_int(out, (uint64_t)-1, 2);        /* producer epoch */
    put_int(out, (uint64_t)-1, 4);        /* base sequence */
    put_int(out, (uint64_t)records, 4);
}

static void finish_batch(uint8_t *batch, size_t length) {
    write_u32(batch + 8, (uint32_t)length - 12);
    write_u32(batch + 17, crc32c(batch + 21, length - 21));
}

/* A Produce request up to its records. */
static void put_produce_prefix(struct request *out, const char *topic, int partition, int acks, size_t batch) {
    begin(out, API_PRODUCE, PRODUCE_VERSION, 1);
    put_uvarint(out, 0);                  /* no transactional id */
    put_int(out, (uint64_t)acks, 2);
    put_int(out, 10000, 4);               /* timeout ms */
    put_uvarint(out, 2);                  /* one topic */
    put_compact_string(out, topic);
    put_uvarint(out, 2);                  /* one partition */
    put_int(out, (uint64_t)partition, 4);
    put_uvarint(out, (uint32_t)batch + 1);
}

void build_produce(struct request *out, const char *topic, int partition, int acks, int value_bytes) {
    struct request batch = {.length = 0};
    put_batch_header(&batch, 1);
    put_record(&batch, 0, value_bytes);
    finish_batch(batch.data, batch.length);
    put_produce_prefix(out, topic, partition, acks, batch.length);
    put_bytes(out, batch.data, batch.length);
    put_int(out, 0, 3);                   /* no tagged fields: partition, topic, request */
    finish(out);
}

uint8_t *build_bulk_produce(const char *topic, int partition, int records, int value_bytes, size_t *length) {
    size_t capacity = 1024 + (size_t)records * (size_t)(value_bytes + 32), filled;
    uint8_t *batch = malloc(capacity), *frame = malloc(capacity + 1024);
    if (!batch || !frame) die("out of memory");
    struct request part = {.length = 0};
    put_batch_header(&part, records);
    memcpy(batch, part.data, filled = part.length);
    for (int i = 0; i < records; i++) {
        part.length = 0;
        put_record(&part, i, value_bytes);
        memcpy(batch + filled, part.data, part.length);
        filled += part.length;
    }
    finish_batch(batch, filled);
    put_produce_prefix(&part, topic, partition, 1, filled);
    memcpy(frame, part.data, part.length);
    memcpy(frame + part.length, batch, filled);
    memset(frame + part.length + filled, 0, 3); /* no tagged fields */
    *length = part.length + filled + 3;
    write_u32(frame, (uint32_t)*length - 4);
    free(batch);
    return frame;
}

void build_fetch(struct request *out, const char *topic, int partition, int max_wait_ms, int max_bytes) {
    begin(out, API_FETCH, FETCH_VERSION, 1);
    put_int(out, (uint64_t)-1, 4);        /* replica id */
    put_int(out, (uint64_t)max_wait_ms, 4);
    put_int(out, 1, 4);                   /* min bytes */
    put_int(out, (uint64_t)max_bytes, 4);
    put_int(out, 0, 1);                   /* read uncommitted */
    put_int(out, 0, 4);                   /* session id */
    put_int(out, (uint64_t)-1, 4);        /* session epoch: no session */
    put_uvarint(out, 2);
    put_compact_string(out, topic);
    put_uvarint(out, 2);
    put_int(out, (uint64_t)partition, 4);
    put_int(out, (uint64_t)-1, 4);        /* current leader epoch */
    out->offset_at = out->length;
    put_int(out, 0, 8);                   /* fetch offset */
    put_int(out, (uint64_t)-1, 4);        /* last fetched epoch */
    put_int(out, (uint64_t)-1, 8);        /* log start offset */
    put_int(out, (uint64_t)max_bytes, 4);
    put_int(out, 0, 2);                   /* no tagged fields: partition, topic */
    put_uvarint(out, 1);                  /* no forgotten topics */
    put_uvarint(out, 1);                  /* empty rack */
    put_int(out, 0, 1);
    finish(out);
}

void build_offset_commit(struct request *out, const char *group, const char *topic, int partition) {
    begin(out, API_OFFSET_COMMIT, OFFSET_COMMIT_VERSION, 1);
    put_compact_string(out, group);
    put_int(out, (uint64_t)-1, 4);        /* no generation */
    put_uvarint(out, 1);                  /* empty member id */
    put_uvarint(out, 0);                  /* no instance id */
    put_uvarint(out, 2);                  /* one topic */
    put_compact_string(out, topic);
    put_uvarint(out, 2);                  /* one partition */
    put_int(out, (uint64_t)partition, 4);
    out->offset_at = out->length;
    put_int(out, 0, 8);                   /* the offset */
    put_int(out, (uint64_t)-1, 4);        /* leader epoch */
    put_uvarint(out, 1);                  /* empty metadata */
    put_int(out, 0, 3);                   /* no tagged fields: partition, topic, request */
    finish(out);
}

void build_api_versions(struct request *out) {
    begin(out, API_API_VERSIONS, 0, 0);
    finish(out);
}

void set_correlation(struct request *request, uint32_t correlation_id) {
    write_u32(request->data + 8, correlation_id);
}

/* The one partition's error code in a Produce answer (frame without its size field). */
int produce_error(const uint8_t *frame, size_t length, const char *topic) {
    /* correlation id, tagged fields, topic count, name, partition count, partition index, error code */
    size_t at = 4 + 1 + 1 + 1 + strlen(topic) + 1 + 4;
    if (length < at + 2) die("a Produce answer of %zu bytes is too short", length);
    return (int16_t)(frame[at] << 8 | frame[at + 1]);
}

/* The one partition's error code in an OffsetCommit answer (frame without its size field). */
int offset_commit_error(const uint8_t *frame, size_t length, const char *topic) {
    /* correlation id, tagged fields, throttle time, topic count, name, partition count, index, error code */
    size_t at = 4 + 1 + 4 + 1 + 1 + strlen(topic) + 1 + 4;
    if (length < at + 2) die("an OffsetCommit answer of %zu bytes is too short", length);
    return (int16_t)(frame[at] << 8 | frame[at + 1]);
}

/* ---- percentiles ------------------------------------------------------------------------------ */

static int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static double quantile_ms(const uint32_t *sorted, size_t count, double quantile) {
    size_t index = (size_t)(quantile * (double)count);
    if (index >= count) index = count - 1;
    return sorted[index] / 1e6;
}

void print_percentiles(uint32_t *samples_ns, size_t count) {
    if (count == 0) die("nothing was measured");
    qsort(samples_ns, count, sizeof *samples_ns, ascending);
    printf("\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, \"max_ms\": %.4f",
           quantile_ms(samples_ns, count, 0.5), quantile_ms(samples_ns, count, 0.99),
           quantile_ms(samples_ns, count, 0.999), samples_ns[count - 1] / 1e6);
}
