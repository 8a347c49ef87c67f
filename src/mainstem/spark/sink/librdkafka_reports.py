"""What librdkafka tells by callbacks: what became of records, and what keeps it from its work."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError

from mainstem.spark.librdkafka_troubles import Troubles
from mainstem.spark.sink.errors import SinkError, SinkOptionError
from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.producer import explain
from mainstem.spark.sink.topics import addresses
from mainstem.wire import KafkaRefusal


class Reports(Troubles):
    """The callbacks of one task."""

    def __init__(self, options: SinkOptions) -> None:
        assert options.librdkafka is not None
        super().__init__(options.librdkafka.client, addresses(options.client), SinkError)
        self._options = options
        self.acknowledged = 0

    def on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.acknowledged += 1
            self.is_login_accepted = True
        else:
            self.fail(str(self.refusal(error, message.topic(), message.partition())))

    def refused_options(self, error: KafkaError) -> SinkOptionError:
        return SinkOptionError(f"librdkafka refuses the options: {self.text(error)}")

    def refusal(self, error: KafkaError, topic: str, partition: int) -> SinkError:
        """What keeps a record from being written."""
        what = f"produce to {topic}-{partition}"
        if error.code() == KafkaError._MSG_TIMED_OUT:
            trouble = f"; the last trouble was: {self.last}" if self.last else ""
            timeout_ms = self._options.client.api_timeout_ms
            return SinkError(
                f"{what}: not acknowledged within kafka.delivery.timeout.ms, {timeout_ms} ms{trouble}"
            )
        if error.code() > 0:
            return SinkError(explain(KafkaRefusal(error.code(), what, self.text(error))))
        return SinkError(f"{what}: {self.text(error)}")
