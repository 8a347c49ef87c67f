"""Settings: followers that copy a leader's log.

Declarations only: nothing here may read a value or act on one.
"""

from mainstem.config.definition import BOOLEAN, CLUSTER_WIDE, INT, LONG, STRING, Setting
from mainstem.config.validators import at_least

SETTINGS = (
    Setting(
        "num.replica.fetchers",
        INT,
        1,
        "How many connections a follower uses to copy from one leader.",
        at_least(1),
        update=CLUSTER_WIDE,
    ),
    Setting(
        "num.replica.alter.log.dirs.threads", INT, None, "How many threads move replicas between directories."
    ),
    Setting(
        "replica.fetch.max.bytes",
        INT,
        1048576,
        "The most bytes of one partition that a follower asks for at a time.",
        at_least(0),
    ),
    Setting(
        "replica.fetch.response.max.bytes",
        INT,
        10485760,
        "The most bytes that a follower asks for at a time.",
        at_least(0),
    ),
    Setting(
        "replica.fetch.min.bytes",
        INT,
        1,
        "The fewest bytes a leader answers a follower with before the wait is over.",
    ),
    Setting(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        "How long a leader may hold a follower's fetch when there is nothing new.",
    ),
    Setting(
        "replica.fetch.backoff.ms", INT, 1000, "How long a follower rests after a failed fetch.", at_least(0)
    ),
    Setting(
        "replica.lag.time.max.ms",
        LONG,
        30000,
        "A follower that has not caught up for this long leaves the in-sync replicas.",
    ),
    Setting(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "How often the high watermarks are written down.",
        acted_on=True,
    ),
    Setting("replica.socket.timeout.ms", INT, 30000, "How long a follower waits for the network."),
    Setting(
        "replica.socket.receive.buffer.bytes",
        INT,
        65536,
        "The kernel's receive buffer of a follower's connections.",
    ),
    Setting("replica.selector.class", STRING, None, "A Java class that sends consumers to a nearby replica."),
    Setting(
        "follower.fetch.last.tiered.offset.enable",
        BOOLEAN,
        False,
        "Whether a new follower begins at the end of the remotely stored data.",
        update=CLUSTER_WIDE,
    ),
    Setting(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        "Whether leaderships return to the preferred replicas by themselves.",
    ),
    Setting(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        "How often the controller looks whether leaderships should return.",
        at_least(1),
    ),
)
