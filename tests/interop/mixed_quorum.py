"""A quorum of both kinds: controllers of Mainstem in this process, controllers of Apache Kafka beside it."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.apis.k55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from mainstem.protocol.errors import ErrorCode
from tests.broker.harness import ConnectionClosedError, eventually
from tests.broker.quorum.controllers import Controllers
from tests.support.kafka_peer import start_kafka_node
from tests.support.shared import end_guarded

DESCRIBE = DescribeQuorumRequest(topics=[TopicData("__cluster_metadata", [PartitionData(0)])])
# A machine that starts a JVM has little time for anybody else.
SLOW = {
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "3000",
    "controller.quorum.request.timeout.ms": "3000",
}
_FIRST_LOG = "__cluster_metadata-0/00000000000000000000.log"


class Mixed(Controllers):
    """Some of the controllers are Apache Kafka's."""

    def __init__(
        self,
        folder: Path,
        voters: Iterable[int],
        foreign: Iterable[int],
        observers: Iterable[int] = (),
        *,
        static: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            folder,
            voters,
            static=static,
            foreign=foreign,
            observers=observers,
            settings=SLOW | dict(settings or {}),
        )
        self.running: set[int] = set()

    def settings_of(self, node_id: int) -> dict[str, str]:
        """Anybody may be asked who leads, voter or not."""
        servers = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        return super().settings_of(node_id) | {"controller.quorum.bootstrap.servers": servers}

    def _name(self, node_id: int) -> str:
        # The test's folder and, where tests run side by side, that of the worker.
        return "-".join((*self.folder.parts[-3:-1], str(node_id)))

    async def start_kafka(self, *node_ids: int) -> None:
        for node_id in node_ids or self.foreign:
            settings = self.settings_of(node_id) | {
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            }
            properties = self.directory(node_id).with_name(f"node-{node_id}.d") / "server.properties"
            properties.parent.mkdir(exist_ok=True)
            properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
            start_kafka_node(self._name(node_id), properties)
            self.running.add(node_id)

    async def end_kafka(self, *node_ids: int, kindly: bool = False) -> None:
        for node_id in node_ids or list(self.running):
            self.running.discard(node_id)
            await asyncio.to_thread(end_guarded, self._name(node_id), kindly=kindly)

    async def leading(self, among: set[int]) -> int:
        """The leader, once it is one of these and answers."""
        while True:
            for node_id in among:
                with suppress(OSError, ConnectionClosedError):
                    response = await self.ask(node_id, DESCRIBE)
                    partition = response.topics[0].partitions[0]
                    if not partition.error_code and partition.leader_id == node_id:
                        return node_id
            await asyncio.sleep(0.05)

    async def end(self, node_id: int) -> None:
        """It says nothing more to anybody."""
        await (self.end_kafka(node_id) if node_id in self.foreign else self.kill(node_id))

    async def change(self, node_id: int, value: int) -> None:
        """One change by the active controller."""
        if node_id in self.foreign:
            await self.alter(node_id, value)
        else:
            await self.write("max.connections", str(value))

    async def alter(self, node_id: int, value: int) -> None:
        """One change by Apache Kafka's active controller."""
        config = AlterableConfig(name="max.connections", config_operation=0, value=str(value))
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
        while True:
            response = await self.ask(node_id, IncrementalAlterConfigsRequest(resources=[resource]))
            (result,) = response.responses
            if result.error_code != ErrorCode.NOT_CONTROLLER:  # it leads, and has not begun to decide
                break
            await asyncio.sleep(0.02)
        assert result.error_code == 0, result.error_message

    async def all_agree(self, value: int) -> None:
        """Mainstem's nodes have the value, and every node that runs the very same log."""

        def agree() -> bool:
            images = [self.image(node_id) for node_id in self.nodes]
            logs = [self.bytes_of(node_id) for node_id in (*self.nodes, *self.running)]
            return (
                all(image.config(4, "").get("max.connections") == str(value) for image in images)
                and len(set(logs)) == 1
            )

        await eventually(agree, f"all have {value}")

    def bytes_of(self, node_id: int) -> bytes:
        """What is in the log, without the blocks that Apache Kafka reserves behind its end."""
        path = self.directory(node_id) / _FIRST_LOG
        return path.read_bytes().rstrip(b"\0") if path.exists() else b""
