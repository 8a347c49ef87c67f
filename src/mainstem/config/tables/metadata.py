"""Settings: the controllers' quorum and the cluster's metadata log.

Declarations only: nothing here may read a value or act on one.
"""

from mainstem.config.definition import BOOLEAN, INT, LIST, LONG, STRING, Setting
from mainstem.config.validators import Items, at_least

SETTINGS = (
    Setting(
        "controller.quorum.voters",
        LIST,
        (),
        "The controllers that vote, as id@host:port, when the quorum is fixed.",
        Items(),
    ),
    Setting(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        "Addresses at which a node finds the controllers.",
        Items(),
    ),
    Setting(
        "controller.quorum.auto.join.enable",
        BOOLEAN,
        False,
        "Whether a new controller joins the voters by itself.",
    ),
    Setting(
        "controller.quorum.election.timeout.ms",
        INT,
        1000,
        "How long a candidate waits for votes before it tries again.",
        at_least(0),
    ),
    Setting(
        "controller.quorum.election.backoff.max.ms",
        INT,
        1000,
        "The longest rest after a failed election.",
        at_least(0),
    ),
    Setting(
        "controller.quorum.fetch.timeout.ms",
        INT,
        2000,
        "How long a voter goes without its leader before it calls an election.",
        at_least(0),
    ),
    Setting(
        "controller.quorum.fetch.max.bytes",
        INT,
        1048576,
        "The most bytes of the metadata log in one fetch.",
        at_least(1),
    ),
    Setting(
        "controller.quorum.fetch.snapshot.max.bytes",
        INT,
        1048576,
        "The most bytes of a metadata snapshot in one fetch.",
        at_least(1),
    ),
    Setting(
        "controller.quorum.request.timeout.ms",
        INT,
        2000,
        "How long a request between controllers waits for its answer.",
        at_least(0),
    ),
    Setting(
        "controller.quorum.retry.backoff.ms",
        INT,
        20,
        "The rest before a request between controllers is repeated.",
        at_least(0),
    ),
    Setting(
        "controller.quorum.append.linger.ms",
        INT,
        25,
        "How long the leader gathers metadata records before it writes them.",
        at_least(0),
    ),
    Setting(
        "controller.socket.timeout.ms",
        INT,
        30000,
        "How long a broker waits for the network towards the controller.",
    ),
    Setting(
        "controller.performance.sample.period.ms",
        LONG,
        60000,
        "How often the controller reports on its slow events.",
        at_least(100),
        listed=False,
    ),
    Setting(
        "controller.performance.always.log.threshold.ms",
        LONG,
        2000,
        "A controller event that takes longer than this is always logged.",
        at_least(0),
        listed=False,
    ),
    Setting(
        "broker.heartbeat.interval.ms", INT, 2000, "How often a broker tells the controller that it is alive."
    ),
    Setting(
        "broker.session.timeout.ms", INT, 9000, "A broker that has been silent for this long counts as dead."
    ),
    Setting(
        "metadata.log.dir",
        STRING,
        None,
        "The directory of the metadata log; when absent, the first of the data directories.",
    ),
    Setting(
        "metadata.log.segment.bytes",
        INT,
        1073741824,
        "The size at which a segment of the metadata log is closed.",
        at_least(8388608),
    ),
    Setting(
        "metadata.log.segment.ms",
        LONG,
        604800000,
        "The age at which a segment of the metadata log is closed.",
    ),
    Setting(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20971520,
        "After how many bytes of metadata records a snapshot is taken.",
        at_least(1),
    ),
    Setting(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        3600000,
        "After how long a snapshot is taken if anything changed; 0 turns it off.",
        at_least(0),
    ),
    Setting(
        "metadata.max.idle.interval.ms",
        INT,
        500,
        "How often the leader writes an empty record to show it is alive; 0 turns it off.",
        at_least(0),
    ),
    Setting(
        "metadata.max.retention.bytes",
        LONG,
        104857600,
        "How much of the metadata log and its snapshots is kept.",
    ),
    Setting(
        "metadata.max.retention.ms", LONG, 604800000, "How long the metadata log and its snapshots are kept."
    ),
    Setting(
        "internal.metadata.log.segment.bytes",
        INT,
        None,
        "A segment size of the metadata log below the public minimum, for tests.",
        listed=False,
    ),
    Setting(
        "internal.metadata.max.batch.size.in.bytes",
        INT,
        8388608,
        "The largest batch in the metadata log, for tests.",
        listed=False,
    ),
    Setting(
        "internal.metadata.delete.delay.millis",
        LONG,
        60000,
        "How long removed files of the metadata log stay on disk, for tests.",
        listed=False,
    ),
)
