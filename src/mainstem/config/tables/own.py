"""Settings of Mainstem's own, which Apache Kafka does not have.

Declarations only: nothing here may read a value or act on one.
"""

from mainstem.config.definition import INT, STRING, Setting
from mainstem.config.validators import between

SETTINGS = (
    Setting(
        "mainstem.metrics.port",
        INT,
        -1,
        "The port of `/metrics`, `/healthz` and `/readyz` (HTTP); 0 picks a free one, -1 opens none.",
        between(-1, 65535),
        acted_on=True,
        listed=False,
    ),
    Setting(
        "mainstem.metrics.host",
        STRING,
        "localhost",
        "Where that port is opened; nothing protects it, so keep it on loopback or in a network of your own.",
        acted_on=True,
        listed=False,
    ),
)
