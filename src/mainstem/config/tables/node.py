"""Settings: the node's identity and the addresses it is reached at. Declarations only."""

from mainstem.config.definition import INT64_MAX
from mainstem.config.row import (
    ACTED_ON,
    BOOLEAN,
    FIXED_AT_START,
    INT,
    LIST,
    LONG,
    PER_BROKER,
    STRING,
    UNLISTED,
)
from mainstem.config.validators import EachOf, Items, at_least

SETTINGS = (
    LIST("process.roles", ("broker", "controller"), EachOf(("broker", "controller"), may_be_empty=False),
        ACTED_ON,
        doc="What this node does: serve clients (broker), keep the cluster's metadata "
            "(controller), or both."),
    INT("node.id", 1, at_least(0), ACTED_ON,
        doc="The number that names this node; no two nodes of a cluster may share it."),
    INT("broker.id", -1, ACTED_ON, doc="An older name of node.id; give either, or the same number in both."),
    STRING("broker.rack", None, ACTED_ON,
        doc="The rack or zone this node stands in, told to clients and used when replicas are placed."),
    LIST("listeners", ("PLAINTEXT://:9092",), Items(may_be_empty=False), PER_BROKER, ACTED_ON, FIXED_AT_START,
        doc="The addresses to listen on, as NAME://host:port; no host is every interface, port 0 "
            "a free port."),
    LIST("advertised.listeners", None, Items(may_be_empty=False), ACTED_ON,
        doc="The addresses that clients are told to dial, where a listener's own address does not "
            "suit them."),
    STRING("listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", PER_BROKER, ACTED_ON,
        FIXED_AT_START,
        doc="Which security protocol each listener name stands for."),
    STRING("inter.broker.listener.name", None, ACTED_ON,
        doc="The listener that brokers use among themselves."),
    LIST("controller.listener.names", ("CONTROLLER",), Items(may_be_empty=False), ACTED_ON,
        doc="The names of the listeners that controllers use; clients are not served there."),
    LIST("early.start.listeners", None, Items(),
        doc="Listeners that open before the authorizer has finished loading."),
    INT("initial.broker.registration.timeout.ms", 60000, ACTED_ON,
        doc="How long a starting broker tries to register with the controller before it gives up."),
    BOOLEAN("controlled.shutdown.enable", True, ACTED_ON,
        doc="Whether a stopping broker first hands its leaderships over."),
    LONG("server.max.startup.time.ms", INT64_MAX, at_least(0), UNLISTED,
        doc="How long a start may take before the node stops itself."),
    BOOLEAN("unstable.api.versions.enable", False, UNLISTED,
        doc="Whether API versions that are still in development are served."),
    BOOLEAN("unstable.feature.versions.enable", False, UNLISTED,
        doc="Whether feature levels that are still in development may be used."),
)
