"""Settings: metrics, telemetry and external values.

Declarations only: nothing here may read a value or act on one.
"""

from mainstem.config.definition import CLUSTER_WIDE, INT, LIST, LONG, STRING, Setting
from mainstem.config.validators import Items, at_least

SETTINGS = (
    Setting(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        "Java classes that report metrics.",
        Items(),
        update=CLUSTER_WIDE,
    ),
    Setting(
        "metrics.num.samples", INT, 2, "The number of samples that a metric is computed over.", at_least(1)
    ),
    Setting("metrics.sample.window.ms", LONG, 30000, "The length of a sample of a metric.", at_least(1)),
    Setting("metrics.recording.level", STRING, "INFO", "How detailed the metrics are."),
    Setting(
        "kafka.metrics.reporters", LIST, (), "Java classes that report the older kind of metrics.", Items()
    ),
    Setting(
        "kafka.metrics.polling.interval.secs",
        INT,
        10,
        "How often the older kind of metrics is reported.",
        at_least(1),
    ),
    Setting(
        "telemetry.max.bytes",
        INT,
        1048576,
        "The most bytes of metrics that a client may push at a time.",
        at_least(1),
    ),
    Setting(
        "config.providers",
        LIST,
        (),
        "Java classes that fill in values from outside.",
        Items(),
        update=CLUSTER_WIDE,
    ),
)
