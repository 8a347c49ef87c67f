"""Settings: metrics, telemetry and external values. Declarations only."""

from mainstem.config.row import CLUSTER_WIDE, INT, LIST, LONG, STRING
from mainstem.config.validators import Items, at_least

SETTINGS = (
    LIST("metric.reporters", ("org.apache.kafka.common.metrics.JmxReporter",), Items(), CLUSTER_WIDE,
        doc="Java classes that report metrics."),
    INT("metrics.num.samples", 2, at_least(1), doc="The number of samples that a metric is computed over."),
    LONG("metrics.sample.window.ms", 30000, at_least(1), doc="The length of a sample of a metric."),
    STRING("metrics.recording.level", "INFO", doc="How detailed the metrics are."),
    LIST("kafka.metrics.reporters", (), Items(), doc="Java classes that report the older kind of metrics."),
    INT("kafka.metrics.polling.interval.secs", 10, at_least(1),
        doc="How often the older kind of metrics is reported."),
    INT("telemetry.max.bytes", 1048576, at_least(1),
        doc="The most bytes of metrics that a client may push at a time."),
    LIST("config.providers", (), Items(), CLUSTER_WIDE, doc="Java classes that fill in values from outside."),
)
