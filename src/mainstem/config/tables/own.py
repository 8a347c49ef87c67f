"""Settings of Mainstem's own, which Apache Kafka does not have. Declarations only."""

from mainstem.config.row import ACTED_ON, INT, STRING, UNLISTED
from mainstem.config.validators import between

SETTINGS = (
    INT("mainstem.metrics.port", -1, between(-1, 65535), ACTED_ON, UNLISTED,
        doc="The port of `/metrics`, `/healthz` and `/readyz` (HTTP); 0 picks a free one, -1 opens none."),
    STRING("mainstem.metrics.host", "localhost", ACTED_ON, UNLISTED,
        doc="Where that port is opened; nothing protects it, so keep it on loopback or in a "
            "network of your own."),
)
