"""What librdkafka tells by its error callback, and how its answers are waited for meanwhile.

The source and the sink share it. librdkafka tries again whatever happens, and says only that time is up; here
a login that is refused ends the wait, with librdkafka's reason. No secret is in any text, whatever librdkafka
or a token endpoint quotes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from mainstem.spark.librdkafka_options import without_secrets
from mainstem.wire import NoBrokerAnswers

logger = logging.getLogger(__name__)

# The first wait for an answer; each later one is twice as long. In between, troubles are heard of.
_ANSWER_S = 1.0


class Troubles:
    """The error callback of the clients of one task. It is called while the task waits for librdkafka, in the
    task's own thread."""

    def __init__(self, settings: Mapping[str, object], servers: str, error: type[Exception]) -> None:
        self._settings = settings
        self._servers = servers
        self._error = error
        self._failure: str | None = None
        self.last: str | None = None
        self.is_login_accepted = False

    def on_error(self, error: KafkaError) -> None:
        """Only a login that never was accepted will not be later; a token that cannot be renewed now may well
        be, before time is up."""
        text = self.text(error)
        if self.last is None:
            logger.warning("trouble with the brokers: %s", text)
        self.last = text
        if error.code() == KafkaError._AUTHENTICATION and not self.is_login_accepted:
            self.fail(f"the brokers at {self._servers} do not accept the login: {text}")
        elif error.fatal():
            self.fail(f"librdkafka cannot go on: {text}")

    def fail(self, reason: str) -> None:
        """Have this raised. The first failure is the cause; others follow from it."""
        self._failure = self._failure or reason

    def check(self) -> None:
        """Raise what has failed."""
        if self._failure is not None:
            raise self._error(self._failure)

    def text(self, error: KafkaError) -> str:
        return without_secrets(str(error.str()), self._settings)

    def metadata(self, client: AdminClient, topic: str | None, timeout_s: float) -> ClusterMetadata:
        """Of a topic, or of all. NoBrokerAnswers when time is up, and what has failed as soon as it has."""
        deadline = time.monotonic() + timeout_s
        turn_s = _ANSWER_S
        while True:
            left_s = max(deadline - time.monotonic(), 0.001)
            try:
                return client.list_topics(topic, timeout=min(turn_s, left_s))
            except KafkaException as error:
                client.poll(0)
                self.check()
                if time.monotonic() >= deadline:
                    problem = self.last or self.text(error.args[0])
                    raise NoBrokerAnswers(self._servers, problem) from None
            turn_s *= 2
