"""Runs the controller: one decision at a time, its records durable and applied before the answer leaves.

The controller decides (sans I/O), the metadata log makes the records durable, the node applies the new image.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from mainstem.broker.metadata.log import MetadataLog
from mainstem.cluster.controller import Controller
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import MetadataRecord

R = TypeVar("R")

Decision = Callable[[Controller], tuple[R, list[MetadataRecord]]]


class ControllerShell:
    """Serialises the controller's work. `on_change` is told the records after they are in the image."""

    def __init__(
        self,
        controller: Controller,
        metadata_log: MetadataLog,
        on_change: Callable[[MetadataImage, Sequence[MetadataRecord]], Awaitable[None]],
    ) -> None:
        self.controller = controller
        self._metadata_log = metadata_log
        self._on_change = on_change
        self._lock = asyncio.Lock()

    async def submit(self, decide: Decision[R]) -> R:
        """Decide on the newest image, make the records durable, apply them, and return the response.

        Raises KafkaError(KAFKA_STORAGE_ERROR) when the records cannot be written; then nothing has changed.
        """
        async with self._lock:
            response, records = decide(self.controller)
            if records:
                image = await self._metadata_log.append_async(records)
                await self._on_change(image, records)
        return response
