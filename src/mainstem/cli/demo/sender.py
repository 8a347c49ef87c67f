"""Sends the records of `mainstem demo` in their own time, in a thread beside the pipeline."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

from mainstem.cli.clusters.librdkafka import producer_client
from mainstem.cli.clusters.target import Target
from mainstem.cli.demo.stream import Record, Stream

_DELIVERY_TIMEOUT_MS = 60_000
_STOP_TIMEOUT_S = 10.0


class DemoSender(threading.Thread):
    """Sends everything; `finished` is set when all of it is acknowledged, `problem` when it is not."""

    def __init__(self, stream: Stream, bootstrap: str) -> None:
        super().__init__(name="demo-sender", daemon=True)
        self.sent: Counter[str] = Counter()
        self.finished = False
        self.problem: str | None = None
        self._stream = stream
        self._stop_asked = threading.Event()
        settings = {
            "enable.idempotence": True,
            "linger.ms": 5,
            "partitioner": "murmur2_random",
            "message.timeout.ms": _DELIVERY_TIMEOUT_MS,
        }
        self._producer = producer_client(Target({"bootstrap.servers": bootstrap}), settings)

    def stop(self) -> None:
        """Send no more; wait a little until the last ones are acknowledged."""
        self._stop_asked.set()
        if self.is_alive():
            self.join(_STOP_TIMEOUT_S)

    def run(self) -> None:
        started = time.monotonic()
        for complete_s, records in self._stream.slices():
            # What is due after the last order (its payments, the next day) is not waited for.
            due_s = min(complete_s, self._stream.seconds)
            if self._stop_asked.wait(max(0.0, started + due_s - time.monotonic())):
                return
            self._send(records)
            if self.problem is not None:
                return
        self.finished = True

    def _send(self, records: list[Record]) -> None:
        for record in records:
            self._producer.produce(record.topic, record.value, record.key, on_delivery=self._delivered)
        self._producer.flush()
        self.sent.update(record.topic for record in records)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self.problem = error.str()
