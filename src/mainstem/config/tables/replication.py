"""Settings: followers that copy a leader's log. Declarations only."""

from mainstem.config.row import ACTED_ON, BOOLEAN, CLUSTER_WIDE, INT, LONG, STRING
from mainstem.config.validators import at_least

SETTINGS = (
    INT("num.replica.fetchers", 1, at_least(1), CLUSTER_WIDE,
        doc="How many connections a follower uses to copy from one leader."),
    INT("num.replica.alter.log.dirs.threads", None,
        doc="How many threads move replicas between directories."),
    INT("replica.fetch.max.bytes", 1048576, at_least(0), ACTED_ON,
        doc="The most bytes of one partition that a follower asks for at a time."),
    INT("replica.fetch.response.max.bytes", 10485760, at_least(0), ACTED_ON,
        doc="The most bytes that a follower asks for at a time."),
    INT("replica.fetch.min.bytes", 1, ACTED_ON,
        doc="The fewest bytes a leader answers a follower with before the wait is over."),
    INT("replica.fetch.wait.max.ms", 500, ACTED_ON,
        doc="How long a leader may hold a follower's fetch when there is nothing new."),
    INT("replica.fetch.backoff.ms", 1000, at_least(0), ACTED_ON,
        doc="How long a follower rests after a failed fetch."),
    LONG("replica.lag.time.max.ms", 30000, ACTED_ON,
        doc="A follower that has not caught up for this long leaves the in-sync replicas."),
    LONG("replica.high.watermark.checkpoint.interval.ms", 5000, ACTED_ON,
        doc="How often the high watermarks are written down."),
    INT("replica.socket.timeout.ms", 30000, ACTED_ON, doc="How long a follower waits for the network."),
    INT("replica.socket.receive.buffer.bytes", 65536,
        doc="The kernel's receive buffer of a follower's connections."),
    STRING("replica.selector.class", None, ACTED_ON,
        doc="A Java class that sends consumers to a nearby replica."),
    BOOLEAN("follower.fetch.last.tiered.offset.enable", False, CLUSTER_WIDE,
        doc="Whether a new follower begins at the end of the remotely stored data."),
    BOOLEAN("auto.leader.rebalance.enable", True, ACTED_ON,
        doc="Whether leaderships return to the preferred replicas by themselves."),
    LONG("leader.imbalance.check.interval.seconds", 300, at_least(1), ACTED_ON,
        doc="How often the controller looks whether leaderships should return."),
)
