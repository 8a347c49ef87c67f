"""The `kafka.*` options of a write: which are used, which mean nothing here, and which are refused, with why.

The names are those of Kafka 4.3's producer. A consumer's names are taken too, because many programs hand one
set of options to their reads and their writes.
"""

from mainstem.wire.kafka_options import SECURITY_PREFIXES

# Their value changes what is sent, or how.
USED = frozenset(
    {
        "acks",
        "batch.size",
        "bootstrap.servers",
        "client.id",
        "compression.type",
        "default.api.timeout.ms",
        "delivery.timeout.ms",
        "enable.idempotence",
        "max.block.ms",
        "max.request.size",
        "partitioner.ignore.keys",
        "request.timeout.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "transaction.timeout.ms",
    }
)

# Checked by the client, which honours or refuses each.
USED_PREFIXES = SECURITY_PREFIXES

# How a Java producer, or a consumer, goes about its work. Nothing of that exists here; no row depends on it.
WITHOUT_MEANING = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.include.jmx.reporter",
        "auto.offset.reset",
        "buffer.memory",
        "check.crcs",
        "client.dns.lookup",
        "client.rack",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "connections.max.idle.ms",
        "enable.auto.commit",
        "enable.metrics.push",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "key.deserializer",
        "linger.ms",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "send.buffer.bytes",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "value.deserializer",
    }
)

# Each would change what is written, or when, and could not be honoured.
REFUSED = {
    "key.serializer": "is not supported as keys are serialized with ByteArraySerializer; cast the column key",
    "value.serializer": "is not supported as values are serialized with ByteArraySerializer; "
    "cast the column value",
    "transactional.id": "is not supported as transactions are named after the query; "
    "set exactlyOnce to true for one transaction per micro-batch",
    "transaction.two.phase.commit.enable": "is not supported; set exactlyOnce to true for one transaction "
    "per micro-batch",
    "interceptor.classes": "is not supported as no Java code runs here; change the rows with DataFrame "
    "operations",
    "partitioner.class": "is not supported as no Java code runs here; rows go where Java's default "
    "partitioner sends them, or where a column partition says",
    "config.providers": "is not supported as no Java code runs here; write the values themselves",
}

KNOWN = USED | WITHOUT_MEANING | frozenset(REFUSED)
