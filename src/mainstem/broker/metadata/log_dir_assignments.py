"""Puts on record in which log directory each partition of this node is.

It compares what the metadata says with where the logs are, and has the controller write down the difference;
nobody waits for it but a move between directories.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.directories import directory_of
from mainstem.cluster.image import MetadataImage
from mainstem.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)


class LogDirAssignments:
    """The records of one node, and a publisher; `look_at` may be called at any time."""

    def __init__(self, server: "SharedServer") -> None:
        self._server = server
        self._tasks: set[asyncio.Task[None]] = set()

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self.look_at(topic.topic_id for topic in changes.topics)

    def look_at(self, topic_ids: Iterable[bytes]) -> None:
        """Have the directories of these topics' partitions written down where the metadata is wrong."""
        server = self._server
        found: dict[tuple[bytes, int], bytes] = {}
        for topic_id in topic_ids:
            topic = server.image.topics_by_id.get(topic_id)
            for part in () if topic is None else topic.partitions:
                log = server.log_manager.get(topic.name, part.partition) if topic is not None else None
                meta = None if log is None else server.log_manager.dir_of(log).meta
                if meta is not None and directory_of(part, server.node_id) != meta.directory_id:
                    found[topic_id, part.partition] = meta.directory_id
        if found:
            task = server.loop.create_task(self._record(found))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def assign(self, topic_id: bytes, index: int, directory_id: bytes) -> None:
        """Write one down, for sure; KafkaError when that is not possible."""
        await self._assign({(topic_id, index): directory_id})

    async def stop(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _record(self, directories: dict[tuple[bytes, int], bytes]) -> None:
        try:
            await self._assign(directories)
        except KafkaError as error:
            logger.warning("cannot write down where %d partitions are: %s", len(directories), error.message)

    async def _assign(self, directories: dict[tuple[bytes, int], bytes]) -> None:
        from mainstem.protocol.apis.k73_assign_replicas_to_dirs import (
            AssignReplicasToDirsRequest,
            DirectoryData,
            PartitionData,
            TopicData,
        )

        by_directory: dict[bytes, dict[bytes, TopicData]] = {}
        for (topic_id, index), directory_id in directories.items():
            topics = by_directory.setdefault(directory_id, {})
            topics.setdefault(topic_id, TopicData(topic_id)).partitions.append(PartitionData(index))
        broker = self._server.broker
        assert broker is not None, "only brokers have replicas"
        response = await self._server.controller.assign_directories(
            AssignReplicasToDirsRequest(
                broker.node_id,
                broker.epoch,
                [DirectoryData(key, list(topics.values())) for key, topics in by_directory.items()],
            )
        )
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code))
