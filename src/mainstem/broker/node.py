"""A node: the shared server and the roles on it, put together, started and stopped.

No state lives outside of a Node, so that several can live in one process. `process.roles` says which roles
there are: broker, controller, or both.
"""

import asyncio
import logging

from mainstem.broker.broker_role import BrokerRole
from mainstem.broker.clock import Clock
from mainstem.broker.controller_registration import ControllerRegistration
from mainstem.broker.controller_role import ControllerRole
from mainstem.broker.network.listener import BoundListener
from mainstem.broker.shared_server import SharedServer
from mainstem.broker.turns import Turns
from mainstem.config import BrokerConfig
from mainstem.storage.files.files import Files

logger = logging.getLogger(__name__)


class Node:
    """Make it, `await start()`, and `await stop()` in the end, in one event loop."""

    def __init__(
        self, config: BrokerConfig, *, clock: Clock | None = None, files: Files | None = None
    ) -> None:
        self._roles: tuple[str, ...] = config.get("process.roles")
        self.server = SharedServer(config, clock, files=files)
        self._registration: ControllerRegistration | None = None
        self._following: asyncio.Task[None] | None = None  # of a controller alone, until it has begun
        if "broker" in self._roles:
            self.server.broker = BrokerRole(self.server)

    @property
    def broker(self) -> BrokerRole:
        """Its broker role, where it has one."""
        assert self.server.broker is not None, "this node is a controller alone"
        return self.server.broker

    @property
    def bound_listeners(self) -> list[BoundListener]:
        """Those of clients first."""
        return sorted(self.server.bound_listeners, key=lambda bound: bound.is_controller)

    @property
    def dead(self) -> asyncio.Event:
        """Set when the node cannot go on for want of its disks; whoever runs it should end it."""
        return self.server.dead

    async def start(self) -> None:
        """Take the ports, open the data directories, take part in the quorum, join the cluster, and serve.
        Returns when clients are served, which a broker that no controller answers waits for. StartupError if
        that can never be.
        """
        server = self.server
        server.loop = asyncio.get_running_loop()
        server.turns = Turns(server.loop, server.clock)
        try:
            await server.bind()
            server.open()
            if "controller" in self._roles:
                server.controller_role = ControllerRole(server)
                server.network.start(controllers=True)
                if any(bound.is_controller for bound in server.bound_listeners):
                    self._registration = ControllerRegistration(server)
            if server.broker is not None:
                await server.broker.start()
            else:
                # Others may have to start before the quorum says what is committed.
                self._following = server.loop.create_task(
                    server.loader.begin((server.configuration, server.metadata_cache))
                )
                self._following.add_done_callback(self._followed)
                if server.monitor is not None:
                    server.monitor.serving(server.network)
        except BaseException:
            await self.stop(clean=False)
            raise

    def _followed(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.critical("the metadata cannot be followed: %s", error)
            self.dead.set()

    async def stop(self, *, clean: bool = True) -> None:
        """Have the leaderships move away, close the connections, then the logs; after a clean stop the next
        start need not scan anything.
        """
        server, broker = self.server, self.server.broker
        if clean and broker is not None:
            await broker.leave()
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait((self._following,))
        if self._registration is not None:
            await self._registration.close()
            self._registration = None
        if server.controller_role is not None:
            server.controller_role.close()
        server.stop_serving()
        if broker is not None:
            broker.stop_serving()
        await server.stop_publishing()
        if broker is not None:
            await broker.stop_working()
        await server.close_metadata()
        if broker is not None and server.is_open:
            broker.checkpoint(clean=clean)
        server.close_logs(broker_epoch=-1 if broker is None else broker.epoch, clean=clean)
        server.close()
