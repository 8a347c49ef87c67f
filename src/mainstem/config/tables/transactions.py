"""Settings: transactions and the log of their state.

Declarations only: nothing here may read a value or act on one.
"""

from mainstem.config.definition import BOOLEAN, CLUSTER_WIDE, INT, SHORT, Setting
from mainstem.config.validators import at_least

SETTINGS = (
    Setting(
        "transaction.max.timeout.ms",
        INT,
        900000,
        "The longest transaction timeout that a producer may ask for.",
        at_least(1),
        acted_on=True,
    ),
    Setting(
        "transactional.id.expiration.ms",
        INT,
        604800000,
        "How long an unused transactional id is remembered.",
        at_least(1),
        acted_on=True,
    ),
    Setting(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "The number of partitions of the transaction state topic.",
        at_least(1),
        acted_on=True,
    ),
    Setting(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        "The number of replicas of the transaction state topic.",
        at_least(1),
        acted_on=True,
    ),
    Setting(
        "transaction.state.log.min.isr",
        INT,
        2,
        "How many in-sync replicas a write to the transaction state topic needs.",
        at_least(1),
        acted_on=True,
    ),
    Setting(
        "transaction.state.log.segment.bytes",
        INT,
        104857600,
        "The segment size of the transaction state topic.",
        at_least(1),
        acted_on=True,
    ),
    Setting(
        "transaction.state.log.load.buffer.size",
        INT,
        5242880,
        "How many bytes are read at a time when transaction state is loaded.",
        at_least(1),
        acted_on=True,
    ),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10000,
        "How often transactions past their timeout are aborted.",
        at_least(1),
        acted_on=True,
    ),
    Setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3600000,
        "How often forgotten transactional ids are removed.",
        at_least(1),
        acted_on=True,
    ),
    Setting(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether a transactional produce is checked against its coordinator first.",
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        "Whether transactions may be prepared by an outside coordinator.",
    ),
    Setting(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        "The rest before a partition is again added to a transaction by the broker.",
        at_least(1),
        acted_on=True,
    ),
    Setting(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "The longest rest before a partition is again added to a transaction.",
        at_least(0),
        acted_on=True,
    ),
)
