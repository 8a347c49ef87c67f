"""Settings: what a new topic gets when its creator does not say.

Declarations only: nothing here may read a value or act on one.
"""

from mainstem.config.definition import BOOLEAN, CLASS, CLUSTER_WIDE, INT, LONG, Setting
from mainstem.config.validators import at_least

SETTINGS = (
    Setting("num.partitions", INT, 1, "The number of partitions of a new topic.", at_least(1), acted_on=True),
    Setting(
        "default.replication.factor",
        INT,
        1,
        "The number of replicas of each partition of a new topic.",
        acted_on=True,
        aliases=("replication.factor",),
    ),
    Setting(
        "min.insync.replicas",
        INT,
        1,
        "How many replicas must have a record before acks=all is answered.",
        at_least(1),
        update=CLUSTER_WIDE,
        acted_on=True,
    ),
    Setting(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Whether a replica that lags may lead when no other is left, at the price of lost records.",
        update=CLUSTER_WIDE,
        aliases=("unclean.leader.election",),
    ),
    Setting(
        "unclean.leader.election.interval.ms",
        LONG,
        300000,
        "How often leaderless partitions are looked at for an unclean election.",
        at_least(1),
        listed=False,
    ),
    Setting(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Whether asking for a topic that does not exist creates it.",
        acted_on=True,
    ),
    Setting("delete.topic.enable", BOOLEAN, True, "Whether topics can be deleted.", acted_on=True),
    Setting("create.topic.policy.class.name", CLASS, None, "A Java class that judges every new topic."),
    Setting(
        "alter.config.policy.class.name", CLASS, None, "A Java class that judges every change of settings."
    ),
)
