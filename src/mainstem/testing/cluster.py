"""`Cluster`: several Mainstem nodes on this machine, each in a process of its own, for the length of a `with`
block.

It is made the way `mainstem up --nodes` makes one, and its nodes can be killed, stopped, paused and started.
Nothing of the broker is imported into the calling process, and nothing is left behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from mainstem.local_cluster.directory import ClusterDirectory
from mainstem.local_cluster.node_process import NodeEndedError, NodeProcess
from mainstem.local_cluster.settings import Plan
from mainstem.testing.errors import BrokerError
from mainstem.testing.settings import SettingValue, setting_texts

if TYPE_CHECKING:
    from mainstem import wire

_LOG_LINES_SHOWN = 15
_RACK = "one-machine"
Answer = TypeVar("Answer")


class Cluster:
    """`nodes` brokers, numbered from 1, the first three of them controllers as well (of two, the first).

    Settings carry Kafka's names and are given to all nodes.
    """

    def __init__(
        self,
        nodes: int = 3,
        config: Mapping[str, SettingValue] | None = None,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        start_timeout_s: float = 60.0,
        stop_timeout_s: float = 30.0,
    ) -> None:
        self.nodes = nodes
        self._settings = setting_texts(config)
        self._given_data_dir = Path(data_dir) if data_dir is not None else None
        self._host = host
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._temporary: Path | None = None
        self._directory: ClusterDirectory | None = None
        self._plan: Plan | None = None
        self._processes: dict[int, NodeProcess] = {}
        self._paused: set[int] = set()

    def __enter__(self) -> Self:
        return self.start_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """What a client wants as `bootstrap.servers`: all nodes, whether they run or not."""
        return self._started_plan.bootstrap_servers

    @property
    def node_ids(self) -> list[int]:
        return list(range(1, self.nodes + 1))

    @property
    def running(self) -> list[int]:
        """The nodes whose processes are alive, paused ones included."""
        return [node for node, process in sorted(self._processes.items()) if process.running]

    def address(self, node: int) -> str:
        """HOST:PORT of one node; it stays the same as long as the cluster lives."""
        self._check(node)
        return self._started_plan.address(node)

    def pid(self, node: int) -> int:
        return self._process(node).pid

    def data_dir(self, node: int) -> Path:
        """The directory that holds a node's partitions."""
        self._check(node)
        return self._open_directory.data(node)

    def log(self, node: int) -> str:
        """Everything that a node has logged."""
        self._check(node)
        path = self._open_directory.log(node)
        return path.read_text(errors="replace") if path.exists() else ""

    def start_all(self) -> Self:
        """Start every node that does not run; returns when all are ready for clients."""
        return self._start([node for node in self.node_ids if node not in self._processes])

    def start(self, node: int, *, format_data: bool = False) -> Self:
        """Start one node again; returns when it is ready for clients. One whose data is gone is refused
        unless `format_data` says that it is to begin with an empty disk.
        """
        self._check(node)
        if node in self._processes:
            raise BrokerError(f"node {node} is running already")
        return self._start([node], format_data=format_data)

    def begin_start(self, node: int) -> None:
        """Start one node without waiting for it, such as the first of several that need each other."""
        self._check(node)
        if node in self._processes:
            raise BrokerError(f"node {node} is running already")
        self._spawn(node)

    def await_ready(self, nodes: Iterable[int] | None = None) -> None:
        """Return when these nodes, or all that run, are ready for clients."""
        for node in self.running if nodes is None else nodes:
            process = self._process(node)
            try:
                process.await_ready(self._start_timeout_s)
            except TimeoutError as error:
                raise BrokerError(self._explain(node, f"is {error}")) from None
            except NodeEndedError as error:
                raise BrokerError(self._explain(node, str(error))) from None
            self._open_directory.has_been_up(node)

    def kill(self, node: int) -> None:
        """End a node as a crash would (SIGKILL); its data stays as it is at this moment."""
        self._end(node, signal.SIGKILL)

    def stop(self, node: int) -> int:
        """Let a node go in order (SIGTERM): its partitions move first. Returns the exit code."""
        return self._end(node, signal.SIGTERM)

    def restart(self, node: int) -> Self:
        """Stop a node in order and start it again."""
        self.stop(node)
        return self.start(node)

    def pause(self, node: int) -> None:
        """Let a node stand still, as if its machine were overloaded (SIGSTOP)."""
        self._process(node).send_signal(signal.SIGSTOP)
        self._paused.add(node)

    def resume(self, node: int) -> None:
        """Let a paused node go on."""
        self._process(node).send_signal(signal.SIGCONT)
        self._paused.discard(node)

    def leader_of(self, topic: str, partition: int) -> int:
        """The node that leads a partition; waits for an election that is under way."""
        from mainstem.protocol.errors import ErrorCode
        from mainstem.wire import KafkaRefusal

        def find(client: wire.Cluster) -> int:
            what = f"find the leader of {topic}-{partition}"
            found = client.metadata([topic])[topic]
            if found.error:
                raise KafkaRefusal(found.error, what)
            part = found.partitions.get(partition)
            if part is None:
                raise KafkaRefusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
            if part.leader < 0 or part.leader not in self._awake():
                # Whom the cluster has not missed yet leads only on paper.
                raise KafkaRefusal(ErrorCode.LEADER_NOT_AVAILABLE, what)
            return part.leader

        return self._insist(find)

    def controller(self) -> int:
        """The node that is the active controller; waits for an election that is under way."""
        from mainstem.protocol.errors import ErrorCode
        from mainstem.wire import KafkaRefusal

        def find(client: wire.Cluster) -> int:
            leader = client.describe_quorum().leader_id
            if leader not in self._awake():
                raise KafkaRefusal(ErrorCode.LEADER_NOT_AVAILABLE, "find the active controller")
            return leader

        return self._insist(find)

    def topics(self) -> dict[str, wire.TopicMetadata]:
        """All topics with their partitions: who leads, who keeps a copy, whose copy is in sync."""
        return self._insist(lambda client: client.metadata())

    def close(self) -> None:
        """Stop all nodes, and remove what is temporary."""
        self._end_together([*self._processes])
        if self._directory is not None:
            self._directory.close()
            self._directory = None
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    # ---- the processes

    def _prepare(self) -> None:
        if self._directory is not None:
            return
        if self._given_data_dir is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="mainstem-cluster-"))
        directory = ClusterDirectory(self._given_data_dir or self._temporary or Path())
        directory.open(self.nodes)
        self._directory = directory
        self._plan = directory.plan(self._host, 0, self.nodes, _RACK)
        directory.remember()
        for node in self.node_ids:
            directory.write_settings(node, self._plan.settings(node) | self._settings)

    def _start(self, nodes: list[int], *, format_data: bool = False) -> Self:
        """All of them or none; nodes that ran before go on, whatever becomes of these."""
        is_first = self._directory is None
        try:
            self._prepare()
            for node in nodes:
                self._spawn(node, format_data=format_data)
            self.await_ready(nodes)
        except BaseException:
            if is_first:
                self.close()
            else:
                self._end_together([node for node in nodes if node in self._processes])
            raise
        return self

    def _spawn(self, node: int, *, format_data: bool = False) -> None:
        directory = self._open_directory
        if directory.has_lost_data(node) and not format_data:
            raise BrokerError(
                f"node {node} had data in {directory.data(node)}, and it is gone; to start it with an empty "
                f"disk on purpose, use start({node}, format_data=True)"
            )
        options = ["--config", str(directory.properties(node)), "--log-format", "text"]
        if not directory.is_formatted(node):
            options += ["--format-as", directory.cluster_id]
        with directory.log(node).open("ab") as log:
            self._processes[node] = NodeProcess(options, log.fileno(), keep_open=[directory.lock_fd])

    def _end(self, node: int, number: signal.Signals) -> int:
        process = self._process(node)
        if node in self._paused and number is not signal.SIGKILL:
            self.resume(node)
        del self._processes[node]
        self._paused.discard(node)
        return process.end(number, self._stop_timeout_s)

    def _end_together(self, nodes: list[int]) -> None:
        """Stop them at once, for one that waits for the others to take over would wait in vain."""
        for node in self._paused.intersection(nodes):
            self.resume(node)
        processes = [self._processes.pop(node) for node in nodes]
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.end(signal.SIGTERM, self._stop_timeout_s)

    def _process(self, node: int) -> NodeProcess:
        self._check(node)
        if node not in self._processes:
            raise BrokerError(f"node {node} is not running")
        return self._processes[node]

    def _awake(self) -> set[int]:
        return set(self.running) - self._paused

    def _check(self, node: int) -> None:
        if node not in self.node_ids:
            raise BrokerError(f"there is no node {node}: they are 1 to {self.nodes}")

    @property
    def _open_directory(self) -> ClusterDirectory:
        if self._directory is None:
            raise BrokerError("the cluster was not started: use `with Cluster() as cluster`")
        return self._directory

    @property
    def _started_plan(self) -> Plan:
        if self._plan is None:
            raise BrokerError("the cluster was not started: use `with Cluster() as cluster`")
        return self._plan

    def _explain(self, node: int, what: str) -> str:
        return "\n".join([f"node {node} {what}", *self.log(node).splitlines()[-_LOG_LINES_SHOWN:]])

    # ---- asking

    def _insist(self, ask: Callable[[wire.Cluster], Answer]) -> Answer:
        """Ask until there is an answer that is true, or the time for it is over."""
        from mainstem.wire import Cluster as Client
        from mainstem.wire import from_kafka_options

        options = {
            "bootstrap.servers": ",".join(self.address(node) for node in sorted(self._awake())),
            "client.id": "mainstem-testing",
            "retry.backoff.ms": "20",
            "retry.backoff.max.ms": "200",
            "request.timeout.ms": "5000",
            "socket.connection.setup.timeout.ms": "1000",
            "default.api.timeout.ms": str(int(self._start_timeout_s * 1000)),
        }
        with Client(from_kafka_options(options)) as client:
            return client.retried(lambda: ask(client))
