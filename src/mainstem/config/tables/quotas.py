"""Settings: limits on what clients and replication may use. Declarations only."""

from mainstem.config.definition import INT64_MAX
from mainstem.config.row import ACTED_ON, CLASS, CLUSTER_WIDE, INT, LONG, UNLISTED
from mainstem.config.validators import at_least

SETTINGS = (
    INT("quota.window.num", 11, at_least(1),
        doc="The number of samples that client quotas are measured over."),
    INT("quota.window.size.seconds", 1, at_least(1), doc="The length of a sample of client quotas."),
    INT("replication.quota.window.num", 11, at_least(1),
        doc="The number of samples that replication quotas are measured over."),
    INT("replication.quota.window.size.seconds", 1, at_least(1),
        doc="The length of a sample of replication quotas."),
    INT("alter.log.dirs.replication.quota.window.num", 11, at_least(1),
        doc="The number of samples for quotas on moves between directories."),
    INT("alter.log.dirs.replication.quota.window.size.seconds", 1, at_least(1),
        doc="The length of a sample for quotas on moves between directories."),
    INT("controller.quota.window.num", 11, at_least(1),
        doc="The number of samples that controller mutation quotas are measured over."),
    INT("controller.quota.window.size.seconds", 1, at_least(1),
        doc="The length of a sample of controller mutation quotas."),
    CLASS("client.quota.callback.class", None, doc="A Java class that decides the quota of each client."),
    LONG("quota.producer.default", INT64_MAX, at_least(1), UNLISTED,
        doc="The bytes per second that a producer without a quota of its own may send."),
    LONG("quota.consumer.default", INT64_MAX, at_least(1), UNLISTED,
        doc="The bytes per second that a consumer without a quota of its own may fetch."),
    LONG("leader.replication.throttled.rate", INT64_MAX, at_least(0), CLUSTER_WIDE, UNLISTED,
        doc="The bytes per second that a leader sends to throttled replicas."),
    LONG("follower.replication.throttled.rate", INT64_MAX, at_least(0), CLUSTER_WIDE, UNLISTED,
        doc="The bytes per second that a follower fetches for throttled replicas."),
    LONG("replica.alter.log.dirs.io.max.bytes.per.second", INT64_MAX, at_least(0), CLUSTER_WIDE, ACTED_ON,
        UNLISTED,
        doc="The bytes per second that moves between directories may use."),
)
