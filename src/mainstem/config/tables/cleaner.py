"""Settings: compaction, the job that keeps only the latest record of each key. Declarations only."""

from mainstem.config.definition import INT64_MAX
from mainstem.config.row import ACTED_ON, BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, LONG
from mainstem.config.validators import at_least, between

SETTINGS = (
    BOOLEAN("log.cleaner.enable", True, ACTED_ON, doc="Whether compaction runs at all."),
    INT("log.cleaner.threads", 1, at_least(0), CLUSTER_WIDE, ACTED_ON,
        doc="How many processes compact at a time, each a log of its own; 0 for none."),
    DOUBLE("log.cleaner.io.max.bytes.per.second", 1.7976931348623157e308, CLUSTER_WIDE, ACTED_ON,
        doc="The most bytes per second that compaction reads and writes in all."),
    LONG("log.cleaner.dedupe.buffer.size", 134217728, CLUSTER_WIDE, ACTED_ON,
        doc="The memory for the table of keys, for all compactions together; more than 1 MiB for "
            "each process."),
    INT("log.cleaner.io.buffer.size", 524288, at_least(0), CLUSTER_WIDE, ACTED_ON,
        doc="The memory for reading and writing, for all compactions together."),
    DOUBLE("log.cleaner.io.buffer.load.factor", 0.9, CLUSTER_WIDE, ACTED_ON,
        doc="How full the table of keys may get."),
    LONG("log.cleaner.backoff.ms", 15000, at_least(0), CLUSTER_WIDE, ACTED_ON,
        doc="How long compaction rests when there is nothing to do."),
    DOUBLE("log.cleaner.min.cleanable.ratio", 0.5, between(0, 1), CLUSTER_WIDE, ACTED_ON,
        doc="The share of not yet compacted bytes at which a log becomes worth compacting."),
    LONG("log.cleaner.delete.retention.ms", 86400000, at_least(0), CLUSTER_WIDE, ACTED_ON,
        doc="How long the marker of a deleted key stays readable."),
    LONG("log.cleaner.min.compaction.lag.ms", 0, at_least(0), CLUSTER_WIDE, ACTED_ON,
        doc="The age before which a record is left alone by compaction."),
    LONG("log.cleaner.max.compaction.lag.ms", INT64_MAX, at_least(1), CLUSTER_WIDE, ACTED_ON,
        doc="The age at which a record must take part in compaction."),
)
