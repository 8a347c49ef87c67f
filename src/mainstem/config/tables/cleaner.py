"""Settings: compaction, the job that keeps only the latest record of each key.

Declarations only: nothing here may read a value or act on one.
"""

from mainstem.config.definition import BOOLEAN, CLUSTER_WIDE, DOUBLE, INT, INT64_MAX, LONG, Setting
from mainstem.config.validators import at_least, between

SETTINGS = (
    Setting("log.cleaner.enable", BOOLEAN, True, "Whether compaction runs at all.", acted_on=True),
    Setting(
        "log.cleaner.threads",
        INT,
        1,
        "How many processes compact at a time, each a log of its own; 0 for none.",
        at_least(0),
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        1.7976931348623157e308,
        "The most bytes per second that compaction reads and writes in all.",
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134217728,
        "The memory for the table of keys, for all compactions together; more than 1 MiB for each process.",
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "log.cleaner.io.buffer.size",
        INT,
        524288,
        "The memory for reading and writing, for all compactions together.",
        at_least(0),
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        "How full the table of keys may get.",
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "log.cleaner.backoff.ms",
        LONG,
        15000,
        "How long compaction rests when there is nothing to do.",
        at_least(0),
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        "The share of not yet compacted bytes at which a log becomes worth compacting.",
        between(0, 1),
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "log.cleaner.delete.retention.ms",
        LONG,
        86400000,
        "How long the marker of a deleted key stays readable.",
        at_least(0),
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        "The age before which a record is left alone by compaction.",
        at_least(0),
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        INT64_MAX,
        "The age at which a record must take part in compaction.",
        at_least(1),
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
)
