"""Settings: what a new topic gets when its creator does not say. Declarations only."""

from mainstem.config.row import ACTED_ON, BOOLEAN, CLASS, CLUSTER_WIDE, INT, LONG, UNLISTED
from mainstem.config.validators import at_least

SETTINGS = (
    INT("num.partitions", 1, at_least(1), ACTED_ON, doc="The number of partitions of a new topic."),
    INT("default.replication.factor", 1, ACTED_ON, aliases=("replication.factor",),
        doc="The number of replicas of each partition of a new topic."),
    INT("min.insync.replicas", 1, at_least(1), CLUSTER_WIDE, ACTED_ON,
        doc="How many replicas, or all if there are fewer, must have a record before acks=all is answered."),
    BOOLEAN("unclean.leader.election.enable", False, CLUSTER_WIDE, ACTED_ON,
        aliases=("unclean.leader.election",),
        doc="Whether a replica that lags may lead when no other is left, at the price of lost records."),
    LONG("unclean.leader.election.interval.ms", 300000, at_least(1), UNLISTED,
        doc="How often leaderless partitions are looked at for an unclean election."),
    BOOLEAN("auto.create.topics.enable", True, ACTED_ON,
        doc="Whether asking for a topic that does not exist creates it."),
    BOOLEAN("delete.topic.enable", True, ACTED_ON, doc="Whether topics can be deleted."),
    CLASS("create.topic.policy.class.name", None, doc="A Java class that judges every new topic."),
    CLASS("alter.config.policy.class.name", None, doc="A Java class that judges every change of settings."),
)
