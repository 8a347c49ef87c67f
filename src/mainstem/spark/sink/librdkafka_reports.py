"""What librdkafka tells by callbacks: what became of records, and what keeps it from its work.

No secret is in any text, whatever librdkafka or a token endpoint quotes.
"""

from __future__ import annotations

import logging
from typing import Any

from confluent_kafka import KafkaError

from mainstem.spark.sink.errors import SinkError, SinkOptionError
from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.producer import explain
from mainstem.spark.sink.topics import addresses
from mainstem.wire import KafkaRefusal

logger = logging.getLogger(__name__)


class Reports:
    """The callbacks of one task. They are called while it waits for librdkafka, in its own thread."""

    def __init__(self, options: SinkOptions) -> None:
        assert options.librdkafka is not None
        self._options = options
        self._settings = options.librdkafka
        # The first failure is the cause; others follow from it.
        self._failure: str | None = None
        self.acknowledged = 0
        self.trouble: str | None = None

    def on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self._failure = self._failure or str(self.refusal(error, message.topic(), message.partition()))

    def on_error(self, error: KafkaError) -> None:
        """librdkafka tries again whatever happens. Only a login that never was accepted will not be later; a
        token that cannot be renewed now may well be, before the time of the records is up."""
        if self.trouble is None:
            logger.warning("trouble with the brokers: %s", self.text(error))
        self.trouble = self.text(error)
        if error.code() == KafkaError._AUTHENTICATION and not self.acknowledged:
            servers = addresses(self._options.client)
            self._failure = (
                self._failure or f"the brokers at {servers} do not accept the login: {self.trouble}"
            )
        elif error.fatal():
            self._failure = self._failure or f"the producer cannot go on: {self.trouble}"

    def check(self) -> None:
        """Raise what has failed."""
        if self._failure is not None:
            raise SinkError(self._failure)

    def text(self, error: KafkaError) -> str:
        return self._settings.without_secrets(str(error.str()))

    def refused_options(self, error: KafkaError) -> SinkOptionError:
        return SinkOptionError(f"librdkafka refuses the options: {self.text(error)}")

    def refusal(self, error: KafkaError, topic: str, partition: int) -> SinkError:
        """What keeps a record from being written."""
        what = f"produce to {topic}-{partition}"
        if error.code() == KafkaError._MSG_TIMED_OUT:
            trouble = f"; the last trouble was: {self.trouble}" if self.trouble else ""
            timeout_ms = self._options.client.api_timeout_ms
            return SinkError(
                f"{what}: not acknowledged within kafka.delivery.timeout.ms, {timeout_ms} ms{trouble}"
            )
        if error.code() > 0:
            return SinkError(explain(KafkaRefusal(error.code(), what, self.text(error))))
        return SinkError(f"{what}: {self.text(error)}")
