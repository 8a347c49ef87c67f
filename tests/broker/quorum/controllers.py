"""Controllers of one quorum in the test's own loop: real nodes, real sockets, real disks.

They are formatted as their users would do it, started and stopped one by one, and killed without a word to
the others.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mainstem.broker.metadata.formatting import Formatting, format_directories
from mainstem.broker.metadata.log import MetadataLog
from mainstem.broker.node import Node
from mainstem.broker.quorum.driver import QuorumDriver
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import (
    KRaftVersionFeature,
    VoterEndpoint,
    VoterEntry,
    VotersRecord,
)
from mainstem.cluster.records import ConfigRecord
from mainstem.cluster.releases import first_levels
from mainstem.config import resolve
from mainstem.protocol.uuids import random_uuid
from mainstem.storage.files.real_files import RealFiles
from tests.broker.harness import Client, eventually
from tests.wire.ports import free_ports

CLUSTER = "Zm9ybWF0dGVkLWNsdXN0ZQ"
# Short, for nobody wants to wait, and long enough for a busy machine.
TIMES = {
    "controller.quorum.election.timeout.ms": "400",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "800",
    "controller.quorum.request.timeout.ms": "800",
}


def directory_id(node_id: int) -> bytes:
    return b"\x44" * 15 + bytes((node_id,))


def voter(node_id: int, port: int) -> VoterEntry:
    endpoint = VoterEndpoint("CONTROLLER", "127.0.0.1", port)
    return VoterEntry(node_id, directory_id(node_id), [endpoint], KRaftVersionFeature(0, 1))


class Controllers:
    """Nodes by their ids. `static` names the voters by settings, else the format step has named them."""

    def __init__(
        self,
        folder: Path,
        voters: Iterable[int],
        *,
        static: bool = False,
        observers: Iterable[int] = (),
        foreign: Iterable[int] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Those that are `foreign` are formatted as well, and run by somebody else."""
        self.folder = folder
        self.voters = list(voters)
        self.static = static
        self.foreign = set(foreign)
        self.nodes: dict[int, Node] = {}
        self._settings = TIMES | dict(settings or {})
        ids = [*self.voters, *observers]
        self.ports = dict(zip(ids, free_ports(len(ids)), strict=True))
        for node_id in ids:
            self._format(node_id)

    def directory(self, node_id: int) -> Path:
        return self.folder / f"node-{node_id}"

    def _format(self, node_id: int) -> None:
        votes = not self.static and node_id in self.voters
        first = VotersRecord(voters=[voter(each, self.ports[each]) for each in sorted(self.voters)])
        formatting = Formatting(CLUSTER, node_id, first_levels(), first if votes else None)
        directory = self.directory(node_id)
        lines = format_directories(
            RealFiles(),
            [directory],
            directory,
            formatting,
            ignore_formatted=False,
            new_uuid=lambda: directory_id(node_id) if not self.static else random_uuid(),
            now_ms=1_700_000_000_000,
        )
        assert list(lines)

    def settings_of(self, node_id: int) -> dict[str, str]:
        settings = self._settings | {
            "process.roles": "controller",
            "node.id": str(node_id),
            "listeners": f"CONTROLLER://127.0.0.1:{self.ports[node_id]}",
            "log.dirs": str(self.directory(node_id)),
        }
        if self.static:
            voters = [f"{each}@127.0.0.1:{self.ports[each]}" for each in self.voters]
            return settings | {"controller.quorum.voters": ",".join(voters)}
        servers = [f"127.0.0.1:{self.ports[each]}" for each in self.voters]
        return settings | {"controller.quorum.bootstrap.servers": ",".join(servers)}

    # ---- life and death

    async def start(self, *node_ids: int) -> None:
        """Start these, all of them if none is named; returns when each knows what is committed."""
        own = [node_id for node_id in self.ports if node_id not in self.foreign]
        await asyncio.gather(*(self._start(node_id) for node_id in node_ids or own))

    async def _start(self, node_id: int) -> None:
        config, _ = resolve({}, self.settings_of(node_id))
        node = Node(config)
        await node.start()
        self.nodes[node_id] = node

    async def stop(self, *node_ids: int) -> None:
        await asyncio.gather(*(self.nodes.pop(node_id).stop() for node_id in node_ids or list(self.nodes)))

    async def kill(self, node_id: int) -> None:
        """It says nothing more to anybody."""
        self.quorum(node_id).close()
        await self.nodes.pop(node_id).stop(clean=False)

    # ---- what they know

    def quorum(self, node_id: int) -> QuorumDriver:
        return self.nodes[node_id].server.quorum

    def log(self, node_id: int) -> MetadataLog:
        return self.nodes[node_id].server.metadata_log

    def image(self, node_id: int) -> MetadataImage:
        return self.log(node_id).image

    async def leader(self) -> int:
        """The active controller, when there is one that all running nodes agree on."""
        await eventually(self._agree, "an active controller that all agree on")
        return next(node_id for node_id in self.nodes if self.quorum(node_id).is_active)

    def _agree(self) -> bool:
        leaders = {(self.quorum(node_id).leader_id, self.quorum(node_id).epoch) for node_id in self.nodes}
        active = [node_id for node_id in self.nodes if self.quorum(node_id).is_active]
        return len(leaders) == 1 and len(active) == 1 and leaders.pop()[0] == active[0]

    async def write(self, name: str, value: str = "1") -> int:
        """One change by the active controller, committed; the offset of its last record."""
        leader = await self.leader()
        image = self.log(leader).append([ConfigRecord(4, "", name, value)])
        await eventually(lambda: self.image(leader).offset >= image.offset, f"{name} is committed")
        return image.offset

    async def all_have(self, *names: str) -> None:
        """Every running node has the changes of these names, and the very same image."""

        def have() -> bool:
            images = [self.image(node_id) for node_id in self.nodes]
            return all(set(names) <= image.config(4, "").keys() for image in images) and same(images)

        await eventually(have, f"all nodes have {names}")

    async def ask(self, node_id: int, request: Any, version: int | None = None) -> Any:
        async with await Client.connect(self.ports[node_id]) as client:
            return await client.call(request, version)


def same(images: list[MetadataImage]) -> bool:
    return all(image == images[0] for image in images)


Make = Callable[..., Controllers]
