"""The newest metadata that everything on this node agrees with, and what was made from it to be used again.

Request handlers, coordinators and whoever else wants to know of topics and brokers looks here, and nowhere
else. It is the image whose logs are made and whose settings are in force, so it may be some changes behind
what the metadata log has.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.image import MetadataImage, TopicImage


class MetadataCache:
    """One publisher of the loader."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.generation = 0  # counts the changes, for whatever is remembered across requests
        self.answers: dict[Any, Any] = {}
        # What of an answer speaks of one topic, by how it was asked for and the topic's name: it is right
        # while that image is the topic's, and brokers and logs are as they were.
        self.topic_answers: dict[Any, dict[str, tuple[TopicImage, bytes]]] = {}
        self._waiters: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[None]]] = []

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self.image = image
        if changes.concerns_clients:
            self._forget_answers()
            if changes.brokers:
                self.topic_answers.clear()
            for topic in changes.removed_topics:
                for answers in self.topic_answers.values():
                    answers.pop(topic.name, None)
        for condition, waiter in self._waiters:
            if not waiter.done() and condition(image):
                waiter.set_result(None)

    async def wait_for(self, condition: Callable[[MetadataImage], bool], timeout_s: float) -> bool:
        """Wait until the metadata is so; False when it was not for so long."""
        if condition(self.image):
            return True
        entry = condition, asyncio.get_running_loop().create_future()
        self._waiters.append(entry)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await entry[1]
        finally:
            self._waiters.remove(entry)
        return condition(self.image)

    def forget(self) -> None:
        """What was made from image and logs is no longer right."""
        self._forget_answers()
        self.topic_answers.clear()

    def _forget_answers(self) -> None:
        self.generation += 1
        self.answers.clear()
