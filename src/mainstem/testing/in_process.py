"""`Broker.in_process()`: Mainstem inside the caller's event loop.

It shares the loop, so a client that blocks the loop's thread can never be answered: use an asyncio client, or
`Broker()` in a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from mainstem.broker.broker_role import BrokerRole
from mainstem.broker.errors import StartupError
from mainstem.broker.node import Node
from mainstem.config import ConfigError, resolve
from mainstem.storage.files.files import Files
from mainstem.storage.files.real_files import RealFiles
from mainstem.testing.errors import BrokerError
from mainstem.testing.settings import SettingValue, setting_texts


class InProcessBroker:
    """One `Node` for the length of an `async with` block."""

    def __init__(
        self,
        config: Mapping[str, SettingValue] | None = None,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        files: Files | None = None,
    ) -> None:
        self._settings = setting_texts(config)
        self._given_data_dir = Path(data_dir) if data_dir is not None else None
        self._temporary: Path | None = None
        self._host = host
        self._port = port
        self.files = files or RealFiles()
        self._node: Node | None = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def node(self) -> BrokerRole:
        """The running broker itself."""
        if self._node is None:
            raise BrokerError("the broker is not running: use `async with Broker.in_process() as broker`")
        return self._node.broker

    @property
    def bootstrap_servers(self) -> str:
        """What a client wants as `bootstrap.servers`: HOST:PORT."""
        listener = self.node.bound_listeners[0]
        host = listener.advertised_host
        return f"{f'[{host}]' if ':' in host else host}:{listener.advertised_port}"

    @property
    def port(self) -> int:
        """The port of `bootstrap_servers`; it stays the same over `restart`."""
        return self.node.bound_listeners[0].advertised_port

    @property
    def data_dir(self) -> Path:
        """The directory that holds the partitions' folders."""
        directory = self._given_data_dir or self._temporary
        if directory is None:
            raise BrokerError("the broker has no data directory before its first start and after close()")
        return directory

    async def start(self) -> Self:
        """Open the data and listen; returns when clients can connect."""
        if self._given_data_dir is None and self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="mainstem-"))
        settings = {
            "listeners": f"PLAINTEXT://{self._host}:{self._port}",
            "log.dirs": str(self.data_dir),
        } | self._settings
        try:
            broker_config, _warnings = resolve({}, settings)
            node = Node(broker_config, files=self.files)
            await node.start()
        except (ConfigError, StartupError) as error:
            await self.close()
            raise BrokerError(str(error)) from error
        self._node = node
        self._port = self.port
        return self

    async def stop(self) -> None:
        """Shut down cleanly and keep the data."""
        node, self._node = self._node, None
        if node is not None:
            await node.stop()

    async def restart(self) -> Self:
        """Stop and start again: the same port, the same data."""
        await self.stop()
        return await self.start()

    async def close(self) -> None:
        """Stop, and remove what is temporary."""
        await self.stop()
        if self._temporary is not None:
            await asyncio.to_thread(shutil.rmtree, self._temporary, ignore_errors=True)
            self._temporary = None
