"""Runs the controller of this node: decisions one after the other, answered when the node has applied them.

The controller decides on what is written (sans I/O), the metadata log makes the records durable, the loader
takes them to the publishers. A decision does not wait for the one before it, so that many share an fsync.
"""

from collections.abc import Callable
from typing import TypeVar

from mainstem.broker.metadata.ignored_settings import warn_of_ignored
from mainstem.broker.metadata.loader import MetadataLoader
from mainstem.broker.metadata.log import MetadataLog
from mainstem.cluster.controller import Controller
from mainstem.cluster.records import MetadataRecord

R = TypeVar("R")

Decision = Callable[[Controller], tuple[R, list[MetadataRecord]]]


class ControllerShell:
    """Takes decisions for as long as its log can be written."""

    def __init__(self, controller: Controller, log: MetadataLog, loader: MetadataLoader) -> None:
        self.controller = controller
        self._log = log
        self._loader = loader

    async def submit(self, decide: Decision[R]) -> R:
        """Decide on everything that is written, and return the response when this node has applied all that
        it rests on. Raises KafkaError(KAFKA_STORAGE_ERROR) when that cannot be written; then nothing has
        changed.
        """
        response, records = decide(self.controller)
        image = self._log.append(records) if records else self._log.pending_image
        await self._loader.applied(image.offset)
        warn_of_ignored(records)
        return response
