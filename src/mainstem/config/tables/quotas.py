"""Settings: limits on what clients and replication may use.

Declarations only: nothing here may read a value or act on one.
"""

from mainstem.config.definition import CLASS, CLUSTER_WIDE, INT, INT64_MAX, LONG, Setting
from mainstem.config.validators import at_least

SETTINGS = (
    Setting(
        "quota.window.num",
        INT,
        11,
        "The number of samples that client quotas are measured over.",
        at_least(1),
    ),
    Setting("quota.window.size.seconds", INT, 1, "The length of a sample of client quotas.", at_least(1)),
    Setting(
        "replication.quota.window.num",
        INT,
        11,
        "The number of samples that replication quotas are measured over.",
        at_least(1),
    ),
    Setting(
        "replication.quota.window.size.seconds",
        INT,
        1,
        "The length of a sample of replication quotas.",
        at_least(1),
    ),
    Setting(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        "The number of samples for quotas on moves between directories.",
        at_least(1),
    ),
    Setting(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        "The length of a sample for quotas on moves between directories.",
        at_least(1),
    ),
    Setting(
        "controller.quota.window.num",
        INT,
        11,
        "The number of samples that controller mutation quotas are measured over.",
        at_least(1),
    ),
    Setting(
        "controller.quota.window.size.seconds",
        INT,
        1,
        "The length of a sample of controller mutation quotas.",
        at_least(1),
    ),
    Setting(
        "client.quota.callback.class", CLASS, None, "A Java class that decides the quota of each client."
    ),
    Setting(
        "quota.producer.default",
        LONG,
        INT64_MAX,
        "The bytes per second that a producer without a quota of its own may send.",
        at_least(1),
        listed=False,
    ),
    Setting(
        "quota.consumer.default",
        LONG,
        INT64_MAX,
        "The bytes per second that a consumer without a quota of its own may fetch.",
        at_least(1),
        listed=False,
    ),
    Setting(
        "leader.replication.throttled.rate",
        LONG,
        INT64_MAX,
        "The bytes per second that a leader sends to throttled replicas.",
        at_least(0),
        update=CLUSTER_WIDE,
        listed=False,
    ),
    Setting(
        "follower.replication.throttled.rate",
        LONG,
        INT64_MAX,
        "The bytes per second that a follower fetches for throttled replicas.",
        at_least(0),
        update=CLUSTER_WIDE,
        listed=False,
    ),
    Setting(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        INT64_MAX,
        "The bytes per second that moves between directories may use.",
        at_least(0),
        update=CLUSTER_WIDE,
        acted_on=True,
        listed=False,
    ),
)
