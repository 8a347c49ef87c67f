"""Settings: the node's identity and the addresses it is reached at.

Declarations only: nothing here may read a value or act on one.
"""

from mainstem.config.definition import BOOLEAN, INT, INT64_MAX, LIST, LONG, PER_BROKER, STRING, Setting
from mainstem.config.validators import EachOf, Items, at_least

SETTINGS = (
    Setting(
        "process.roles",
        LIST,
        ("broker", "controller"),
        "What this node does: serve clients (broker), keep the cluster's metadata (controller), or both.",
        EachOf(("broker", "controller"), may_be_empty=False),
        acted_on=True,
    ),
    Setting(
        "node.id",
        INT,
        1,
        "The number that names this node; no two nodes of a cluster may share it.",
        at_least(0),
        acted_on=True,
    ),
    Setting(
        "broker.id",
        INT,
        -1,
        "An older name of node.id; give either, or the same number in both.",
        acted_on=True,
    ),
    Setting(
        "broker.rack",
        STRING,
        None,
        "The rack or zone this node stands in, told to clients and used when replicas are placed.",
        acted_on=True,
    ),
    Setting(
        "listeners",
        LIST,
        ("PLAINTEXT://:9092",),
        "The addresses to listen on, as NAME://host:port; no host is every interface, port 0 a free port.",
        Items(may_be_empty=False),
        update=PER_BROKER,
        acted_on=True,
        fixed_at_start=True,
    ),
    Setting(
        "advertised.listeners",
        LIST,
        None,
        "The addresses that clients are told to dial, where a listener's own address does not suit them.",
        Items(may_be_empty=False),
        acted_on=True,
    ),
    Setting(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Which security protocol each listener name stands for.",
        update=PER_BROKER,
        acted_on=True,
        fixed_at_start=True,
    ),
    Setting(
        "inter.broker.listener.name",
        STRING,
        None,
        "The listener that brokers use among themselves.",
        acted_on=True,
    ),
    Setting(
        "controller.listener.names",
        LIST,
        ("CONTROLLER",),
        "The names of the listeners that controllers use; clients are not served there.",
        Items(may_be_empty=False),
        acted_on=True,
    ),
    Setting(
        "early.start.listeners",
        LIST,
        None,
        "Listeners that open before the authorizer has finished loading.",
        Items(),
    ),
    Setting(
        "initial.broker.registration.timeout.ms",
        INT,
        60000,
        "How long a starting broker tries to register with the controller before it gives up.",
    ),
    Setting(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        "Whether a stopping broker first hands its leaderships over.",
    ),
    Setting(
        "server.max.startup.time.ms",
        LONG,
        INT64_MAX,
        "How long a start may take before the node stops itself.",
        at_least(0),
        listed=False,
    ),
    Setting(
        "unstable.api.versions.enable",
        BOOLEAN,
        False,
        "Whether API versions that are still in development are served.",
        listed=False,
    ),
    Setting(
        "unstable.feature.versions.enable",
        BOOLEAN,
        False,
        "Whether feature levels that are still in development may be used.",
        listed=False,
    ),
)
