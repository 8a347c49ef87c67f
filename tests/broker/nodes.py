"""Several nodes of one cluster inside the test's event loop, each with a directory of its own.

Their controllers' ports are chosen before they start, since every node has to know them.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mainstem.broker.clock import Clock
from mainstem.broker.metadata.formatting import Formatting, format_directories
from mainstem.broker.node import Node
from mainstem.cluster.releases import first_levels
from mainstem.config import resolve
from mainstem.protocol.uuids import random_uuid, uuid_to_text
from mainstem.storage.files.real_files import RealFiles
from tests.broker.harness import Client, eventually
from tests.wire.ports import free_ports


class Nodes:
    """`roles` by node id; every node with the role controller is a voter."""

    def __init__(self, folder: Path, roles: dict[int, str], settings: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.cluster_id = uuid_to_text(random_uuid())
        self.other_cluster_ids: dict[int, str] = {}  # of nodes that are formatted wrongly
        self.clocks: dict[int, Clock] = {}  # of nodes whose clocks are not the machine's
        self._roles = roles
        self._settings = settings or {}
        self._ports = dict(zip(roles, free_ports(len(roles)), strict=True))
        self._client_ports: dict[int, int] = {}
        self.running: dict[int, Node] = {}

    def settings(self, node_id: int) -> dict[str, str]:
        roles = self._roles[node_id]
        listeners = []
        if "broker" in roles:
            listeners.append(f"PLAINTEXT://127.0.0.1:{self._client_ports.get(node_id, 0)}")
        if "controller" in roles:
            listeners.append(f"CONTROLLER://127.0.0.1:{self._ports[node_id]}")
        voters = [
            f"{voter}@127.0.0.1:{self._ports[voter]}"
            for voter, its_roles in self._roles.items()
            if "controller" in its_roles
        ]
        own = {
            "node.id": node_id,
            "process.roles": roles,
            "listeners": ",".join(listeners),
            "controller.quorum.voters": ",".join(voters),
            "log.dirs": self.directory(node_id),
            "broker.heartbeat.interval.ms": 200,
            "broker.session.timeout.ms": 3_000,
            "offsets.topic.num.partitions": 3,
            "transaction.state.log.num.partitions": 3,
            "log.initial.task.delay.ms": 3_600_000,
        }
        return {name: str(value) for name, value in {**own, **self._settings}.items()}

    def directory(self, node_id: int) -> Path:
        return self.folder / f"node-{node_id}"

    def format(self, node_id: int) -> None:
        directory = self.directory(node_id)
        cluster_id = self.other_cluster_ids.get(node_id, self.cluster_id)
        formatting = Formatting(cluster_id, node_id, first_levels())
        lines = format_directories(
            RealFiles(),
            [directory],
            directory,
            formatting,
            ignore_formatted=True,
            new_uuid=random_uuid,
            now_ms=1,
        )
        assert list(lines)

    async def start(self, *node_ids: int) -> None:
        """Start these nodes together, or all; returns when all of them serve."""
        await asyncio.gather(*(self.begin(node_id) for node_id in node_ids or self._roles))

    async def begin(self, node_id: int) -> None:
        self.format(node_id)
        node = Node(resolve({}, self.settings(node_id))[0], clock=self.clocks.get(node_id))
        self.running[node_id] = node
        await node.start()
        for bound in node.bound_listeners:
            if not bound.is_controller:
                self._client_ports[node_id] = bound.port

    async def stop(self, *node_ids: int) -> None:
        """In order; all of them at once."""
        stopping = [self.running.pop(node_id) for node_id in node_ids or list(self.running)]
        await asyncio.gather(*(node.stop() for node in stopping))

    async def kill(self, node_id: int) -> None:
        """As far as that is possible inside a process that goes on: nothing is said to anybody."""
        node = self.running.pop(node_id)
        await node.stop(clean=False)

    def port(self, node_id: int) -> int:
        return self._client_ports[node_id]

    async def connect(self, node_id: int) -> Client:
        return await Client.connect(self.port(node_id))

    async def active_controller(self) -> int:
        """The node that decides; waits until there is one."""
        await eventually(lambda: bool(list(self._active())), "a controller is active")
        (active,) = self._active()
        return active

    def _active(self) -> Iterable[int]:
        return [node_id for node_id, node in self.running.items() if node.server.is_active_controller]
