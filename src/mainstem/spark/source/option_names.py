"""The names of all options of a read: Spark's own, ours, and Kafka's behind the prefix `kafka.`."""

from mainstem.nearest import did_you_mean, nearest_name
from mainstem.spark.source.errors import OptionError
from mainstem.wire.kafka_options import SECURITY_PREFIXES

STRATEGIES = ("subscribe", "subscribePattern", "assign")
# Those of Spark's connector.
SPARK_NAMES = (
    *STRATEGIES,
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "includeHeaders",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
)
# What Spark's connector does not have.
OWN_NAMES = ("filterPushdown", "maxTasks", "maxRowsPerArrowBatch")
# Of a write, or put there by Spark itself. Many programs hand one set of options to their reads and writes.
PASSED_OVER = (
    "topic",
    "checkpointLocation",
    "queryName",
    "path",
    "exactlyOnce",
    "stagingLocation",
    "stagingInlineBytes",
    "txnAppId",
    "txnVersion",
)
NAMES = {name.lower(): name for name in (*SPARK_NAMES, *OWN_NAMES, *PASSED_OVER)}

# Kafka's options that reading has a use for; those of security are checked by the client itself.
KAFKA_USED = (
    "bootstrap.servers",
    "client.id",
    "default.api.timeout.ms",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "group.id",
    "isolation.level",
    "max.partition.fetch.bytes",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
)

_OFFSET_RESET = (
    "is not supported. Set startingOffsets to 'earliest' or 'latest' instead to say where to start: "
    "Spark keeps the offsets by itself, so that nothing is missed when topics and partitions are added. It "
    "counts when a query is started for the first time; a restarted one goes on where it was"
)
KAFKA_REFUSED = {
    "auto.offset.reset": _OFFSET_RESET,
    "key.deserializer": "is not supported, keys are read as bytes. Use DataFrame operations to make "
    "something else of them",
    "value.deserializer": "is not supported, values are read as bytes. Use DataFrame operations to make "
    "something else of them",
    "enable.auto.commit": "is not supported, Spark keeps the offsets in the checkpoint. Leave it out",
    "interceptor.classes": "is not supported, interceptors can change records. Leave it out",
}
# How near an unknown name of Kafka's must be to be taken for a slip of the pen.
_SLIP_LETTERS = 3


def check_name(name: str) -> None:
    """Refuse a name that nobody knows, with the one that was probably meant."""
    if name.lower() == "client":
        raise OptionError(
            "the option 'client' is not supported: one client reads with every login; leave it out"
        )
    if name.lower() not in NAMES:
        if "." in name:
            raise OptionError(f"the option {name!r} does not exist{_with_prefix(name.lower())}")
        known = [proper for proper in NAMES.values() if proper not in PASSED_OVER]
        raise OptionError(f"the option {name!r} does not exist{did_you_mean(name, known)}")


def _with_prefix(name: str) -> str:
    """Names with points are Kafka's as a rule; somebody has left the prefix out."""
    if name.startswith(SECURITY_PREFIXES):
        return f"; did you mean kafka.{name}?"
    dotted = [known for known in NAMES.values() if "." in known]
    known = [*dotted, *(f"kafka.{used}" for used in (*KAFKA_USED, *KAFKA_REFUSED))]
    nearest = nearest_name(f"kafka.{name}", known) or nearest_name(name, dotted)
    if nearest:
        return f"; did you mean {nearest}?"
    return ": the options of Kafka's client begin with kafka., such as kafka.bootstrap.servers"


def check_kafka_name(name: str) -> None:
    """Refuse what cannot be honoured. A name that Kafka does not have passes, as with Java's client, unless
    it is a slip of one that matters."""
    if name in KAFKA_REFUSED:
        raise OptionError(f"the option 'kafka.{name}' {KAFKA_REFUSED[name]}")
    if name in KAFKA_USED or name.startswith(SECURITY_PREFIXES):
        return
    nearest = nearest_name(name, KAFKA_USED, cutoff=0.9)
    if nearest and abs(len(nearest) - len(name)) < _SLIP_LETTERS:
        raise OptionError(f"the option 'kafka.{name}' does not exist; did you mean kafka.{nearest}?")
