"""The monitoring of one node: what is counted, what is looked up, and the pages that show it."""

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from mainstem.broker.monitoring import cluster, coordination, partitions, requests
from mainstem.broker.monitoring.disk_space import DiskSpace
from mainstem.broker.monitoring.meters import Meters
from mainstem.broker.monitoring.process import process
from mainstem.broker.monitoring.scrape import Scraper
from mainstem.broker.network.listener import GivenBy, bind
from mainstem.config.listeners import Listener
from mainstem.http_server import HttpAnswer, HttpServer, text_answer
from mainstem.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from mainstem.broker.coordination.node_coordinators import NodeCoordinators
    from mainstem.broker.logs.log_cleaner import LogCleaner
    from mainstem.broker.logs.replicas import Replicas
    from mainstem.broker.network.network import Network
    from mainstem.broker.shared_server import SharedServer

_LAG_PROBE_SECONDS: Final = 0.5
_BACKLOG: Final = 64
_GIVEN_BY: Final = GivenBy(host="mainstem.metrics.host", port="--metrics-port")


class Monitor:
    """It is there before the node starts and until it has stopped: its health can be asked for all along."""

    def __init__(self, server: "SharedServer", host: str, port: int) -> None:
        self._server = server
        self._coordinators: NodeCoordinators | None = None  # until clients are served
        self._loop = server.loop
        self._host = host
        self.meters = Meters(server.clock)
        self.events = cluster.ClusterEvents(server.node_id)
        self.scraper = Scraper(server.turns)
        self._disk_space = DiskSpace(server.loop, [str(path) for path in server.config.log_dirs()])
        self._serving = False
        self._lag_timer: asyncio.TimerHandle | None = None
        listener = Listener("METRICS", host, port, "HTTP", host, port, is_controller=False)
        sockets = bind(listener, _BACKLOG, _GIVEN_BY)
        pages = {"/metrics": self._metrics, "/healthz": self._health, "/readyz": self._readiness}
        self.server = HttpServer(server.loop, sockets, pages)
        self._probe_lag()

    @property
    def url(self) -> str:
        """Where the metrics are."""
        host = self._host or "localhost"
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server.port}/metrics"

    async def start(self) -> None:
        await self.server.start()

    def serving(self, network: "Network") -> None:
        """The node answers whoever it is there for from now on."""
        server = self._server
        self.scraper.add(
            requests.requests(self.meters),
            requests.connections(self.meters, network),
            requests.times(self.meters),
            partitions.log_dirs(server.log_manager, self._disk_space),
            cluster.cluster(server, self.events),
            cluster.quorum(server),
            process(server.clock.now_ms() / 1000),
        )
        self._serving = True

    def serving_clients(
        self, replicas: "Replicas", cleaner: "LogCleaner", coordinators: "NodeCoordinators"
    ) -> None:
        """It has what a broker has."""
        self.scraper.add(
            partitions.partitions(replicas),
            partitions.cleaning(cleaner),
            coordination.groups(coordinators, replicas),
            coordination.transactions(coordinators, self._server.clock),
        )
        self._coordinators = coordinators

    def stopping(self) -> None:
        self._serving = False
        self.scraper.close()

    def close(self) -> None:
        self.stopping()
        if self._lag_timer is not None:
            self._lag_timer.cancel()
        self.server.close()

    def _probe_lag(self) -> None:
        due_ns = self._server.clock.ticks_ns() + int(_LAG_PROBE_SECONDS * 1e9)
        self._lag_timer = self._loop.call_later(_LAG_PROBE_SECONDS, self._probed, due_ns)

    def _probed(self, due_ns: int) -> None:
        self.meters.loop_lag.observe_ns(self._server.clock.ticks_ns() - due_ns)
        self._probe_lag()

    # ---- pages

    async def _metrics(self) -> HttpAnswer:
        if not self._serving:
            return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, "the broker is starting or stopping\n")
        await self._disk_space.refresh()
        return HttpAnswer(HTTPStatus.OK, CONTENT_TYPE, await self.scraper.scrape())

    async def _health(self) -> HttpAnswer:
        """Whether it would be of use to start the process anew: not as long as this is answered at all."""
        if self._server.dead.is_set():
            return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, "no log directory is left\n")
        return text_answer(HTTPStatus.OK, "ok\n")

    async def _readiness(self) -> HttpAnswer:
        """Whether clients should be sent here now."""
        await self._disk_space.refresh()
        problem = self._not_ready()
        if problem is not None:
            return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{problem}\n")
        return text_answer(HTTPStatus.OK, "ready\n")

    def _not_ready(self) -> str | None:
        if not self._serving or (self._coordinators is None and self._server.broker is not None):
            return "the broker is starting or stopping"
        if self._server.dead.is_set():
            return "no log directory is left"
        problem = None if self._coordinators is None else self._coordinators.problem
        return problem or self._full_disk()

    def _full_disk(self) -> str | None:
        """A batch of the largest size that producers may send would be refused."""
        needed_bytes = self._server.config.get("message.max.bytes")
        for log_dir in self._server.log_manager.online_dirs:
            space = self._disk_space.known.get(str(log_dir.path))
            if space is not None and space.free_bytes < needed_bytes:
                return f"the disk is full: {space.free_bytes} bytes are left for {log_dir.path}"
        return None
