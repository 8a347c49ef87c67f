"""Says why messages are not acknowledged, which librdkafka keeps to itself while it goes on trying.

The cluster is asked only when nothing has been acknowledged for a while.
"""

from __future__ import annotations

import time

from mainstem.cli.clusters.target import Target
from mainstem.cli.errors import CommandError
from mainstem.cli.streams import say
from mainstem.wire import Cluster, topic_resource

SAY_AFTER_S = 2.0
SAY_EVERY_S = 10.0
_MIN_IN_SYNC = "min.insync.replicas"


class Delay:
    """Watches how many messages wait."""

    def __init__(self, target: Target, topic: str, acks: str) -> None:
        self._target = target
        self._topic = topic
        self._acks = acks
        self._waiting = -1
        self._say_at = 0.0
        self.reason = ""

    def watch(self, waiting: int) -> None:
        """To be called again and again with the number of messages that are not acknowledged yet."""
        now = time.monotonic()
        if waiting != self._waiting:
            self._waiting, self._say_at = waiting, now + SAY_AFTER_S
        elif now >= self._say_at:
            self._say_at = now + SAY_EVERY_S
            self.reason = self._why()
            what = "1 message is" if waiting == 1 else f"{waiting:,} messages are"
            why = f": {self.reason}" if self.reason else ""
            say(f"mainstem: still trying: {what} not acknowledged yet{why}")

    def _why(self) -> str:
        try:
            with self._target.connect() as cluster:
                return self._obstacle(cluster)
        except CommandError as error:
            return error.message

    def _obstacle(self, cluster: Cluster) -> str:
        topic = cluster.metadata([self._topic])[self._topic]
        if not topic.partitions:
            return f"there is no topic {self._topic!r} any more"
        for number, part in topic.partitions.items():
            if part.leader < 0:
                return f"nobody leads {self._topic}-{number}"
        if self._acks == "all":
            (setting,) = cluster.describe_configs(topic_resource(self._topic), [_MIN_IN_SYNC])
            for number, part in topic.partitions.items():
                if len(part.isr) < min(int(setting.value or 1), len(part.replicas)):
                    have = f"{self._topic}-{number} has {len(part.isr)} in sync"
                    return f"{_MIN_IN_SYNC} is {setting.value}, and {have}"
        return ""
