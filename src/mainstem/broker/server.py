"""Runs a node in the foreground: chooses the event loop, handles the signals, shuts down cleanly."""

import asyncio
import gc
import signal
from collections.abc import Callable

from mainstem.broker.node import Node
from mainstem.config import BrokerConfig


def run(config: BrokerConfig, *, on_ready: Callable[[Node], None], use_uvloop: bool = True) -> int:
    """Run until SIGTERM or SIGINT, or until no log directory is left, and return the exit code. Raises
    StartupError when the node cannot start.
    """
    loop = _new_loop(use_uvloop)
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(_serve(config, on_ready))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        asyncio.set_event_loop(None)
        loop.close()


def _new_loop(use_uvloop: bool) -> asyncio.AbstractEventLoop:
    if use_uvloop:
        try:
            import uvloop
        except ImportError:  # a platform without wheels: plain asyncio serves as well
            pass
        else:
            return uvloop.new_event_loop()
    return asyncio.new_event_loop()


async def _serve(config: BrokerConfig, on_ready: Callable[[Node], None]) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    node = Node(config)
    ended = asyncio.ensure_future(_first_of(stop, node.dead))
    try:
        # A node that is to stop while it waits for its cluster does not wait any longer.
        starting = asyncio.ensure_future(node.start())
        await asyncio.wait((starting, ended), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            gc.collect()
            gc.freeze()  # what is loaded now lives as long as the process: the collector need not look at it
            on_ready(node)
            await ended
        else:
            starting.cancel()
            await asyncio.wait((starting,))
    finally:
        ended.cancel()
        await node.stop()
    return 1 if node.dead.is_set() else 0


async def _first_of(*events: asyncio.Event) -> None:
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
