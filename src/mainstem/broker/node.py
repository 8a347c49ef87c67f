"""A node: the shared server and the roles on it, put together, started and stopped.

No state lives outside of a Node, so that several can live in one process. `process.roles` says which roles
there are: both, until a node can be only one of them.
"""

import asyncio

from mainstem.broker.broker_role import BrokerRole
from mainstem.broker.clock import Clock
from mainstem.broker.controller_role import ControllerRole
from mainstem.broker.shared_server import SharedServer
from mainstem.broker.turns import Turns
from mainstem.config import BrokerConfig
from mainstem.storage.files.files import Files


class Node:
    """Make it, `await start()`, and `await stop()` in the end, in one event loop."""

    def __init__(
        self, config: BrokerConfig, *, clock: Clock | None = None, files: Files | None = None
    ) -> None:
        self._server = SharedServer(config, clock, files=files)
        self.broker = BrokerRole(self._server)

    @property
    def dead(self) -> asyncio.Event:
        """Set when no log directory is left; whoever runs the node should end it."""
        return self._server.dead

    async def start(self) -> None:
        """Take the ports, open the data directories, become the controller, and serve. StartupError if it
        cannot.
        """
        server = self._server
        server.loop = asyncio.get_running_loop()
        server.turns = Turns(server.loop, server.clock)
        try:
            await self.broker.bind()
            server.open()
            server.controller = ControllerRole(server)
            await self.broker.start()
        except BaseException:
            await self.stop(clean=False)
            raise

    async def stop(self, *, clean: bool = True) -> None:
        """Close the connections, then the logs; after a clean stop the next start need not scan anything."""
        self.broker.stop_serving()
        await self._server.stop_publishing()
        await self.broker.stop_working()
        await self._server.close_metadata()
        if self._server.is_open:
            self.broker.close_logs(clean=clean)
            self._server.closed()
        self.broker.close()
