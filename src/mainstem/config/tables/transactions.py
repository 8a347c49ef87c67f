"""Settings: transactions and the log of their state. Declarations only."""

from mainstem.config.row import ACTED_ON, BOOLEAN, CLUSTER_WIDE, INT, SHORT
from mainstem.config.validators import at_least

SETTINGS = (
    INT("transaction.max.timeout.ms", 900000, at_least(1), ACTED_ON,
        doc="The longest transaction timeout that a producer may ask for."),
    INT("transactional.id.expiration.ms", 604800000, at_least(1), ACTED_ON,
        doc="How long an unused transactional id is remembered."),
    INT("transaction.state.log.num.partitions", 50, at_least(1), ACTED_ON,
        doc="The number of partitions of the transaction state topic."),
    SHORT("transaction.state.log.replication.factor", 3, at_least(1), ACTED_ON,
        doc="The number of replicas of the transaction state topic."),
    INT("transaction.state.log.min.isr", 2, at_least(1), ACTED_ON,
        doc="How many in-sync replicas a write to the transaction state topic needs."),
    INT("transaction.state.log.segment.bytes", 104857600, at_least(1), ACTED_ON,
        doc="The segment size of the transaction state topic."),
    INT("transaction.state.log.load.buffer.size", 5242880, at_least(1), ACTED_ON,
        doc="How many bytes are read at a time when transaction state is loaded."),
    INT("transaction.abort.timed.out.transaction.cleanup.interval.ms", 10000, at_least(1), ACTED_ON,
        doc="How often transactions past their timeout are aborted."),
    INT("transaction.remove.expired.transaction.cleanup.interval.ms", 3600000, at_least(1), ACTED_ON,
        doc="How often forgotten transactional ids are removed."),
    BOOLEAN("transaction.partition.verification.enable", True, CLUSTER_WIDE, ACTED_ON,
        doc="Whether a transactional produce is checked against its coordinator first."),
    BOOLEAN("transaction.two.phase.commit.enable", False,
        doc="Whether transactions may be prepared by an outside coordinator."),
    INT("add.partitions.to.txn.retry.backoff.ms", 20, at_least(1), ACTED_ON,
        doc="The rest before a partition is again added to a transaction by the broker."),
    INT("add.partitions.to.txn.retry.backoff.max.ms", 100, at_least(0), ACTED_ON,
        doc="The longest rest before a partition is again added to a transaction."),
)
