"""`mainstem up`: runs one broker in the foreground until SIGTERM or Ctrl-C.

It is on the path from process start to a ready broker: it imports no typer, no rich and no client library.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem import logs
from mainstem.cli.errors import CommandError, in_two_lines, report
from mainstem.cli.streams import OutputLostError, abandon_output
from mainstem.cli.up.banner import banner, ready_line
from mainstem.cli.up.options import UpOptions, parse

if TYPE_CHECKING:
    from mainstem.broker.node import Node
    from mainstem.config import BrokerConfig

# As long as a service manager waits for a broker with many logs.
ORPHAN_STOP_S = 30.0

logger = logging.getLogger("mainstem.up")


def main(arguments: Sequence[str]) -> int:
    """Parse the command line of `up`, run the broker, return the exit code."""
    try:
        return run(parse(arguments))
    except CommandError as error:
        return report(error)


def run(options: UpOptions) -> int:
    """Run the broker as the options say; the temporary directory of --ephemeral does not outlive the call."""
    if options.nodes is not None:
        from mainstem.cli.up.cluster import run_cluster

        return run_cluster(options)
    logs.configure(options.log_level or "info", options.log_format)
    signal.signal(signal.SIGTERM, _stop_before_ready)
    temporary = (
        Path(tempfile.mkdtemp(prefix="mainstem-")) if options.ephemeral and options.data is None else None
    )
    data_dir = temporary or (Path(options.data) if options.data is not None else None)
    owner = _OwnerPipe() if options.owner_pipe else None
    try:
        return _serve(options, data_dir)
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        elif options.ephemeral and data_dir is not None and owner is not None and owner.closed:
            shutil.rmtree(data_dir, ignore_errors=True)


def _serve(options: UpOptions, data_dir: Path | None) -> int:
    from mainstem.broker import server
    from mainstem.broker.errors import StartupError
    from mainstem.cli.up.settings import CHECK_DIRECTORY, configure

    config, warnings = configure(options, data_dir)
    _refuse_cluster_directories(config)
    if options.format_as is not None:
        _format(config, options.format_as)
    for warning in warnings:
        logger.warning(warning)

    def on_ready(node: Node) -> None:
        _obey_hangup()
        _announce(node, options)

    try:
        code = server.run(config, on_ready=on_ready, use_uvloop=options.uvloop)
    except StartupError as error:
        raise in_two_lines(str(error), CHECK_DIRECTORY) from None
    except PermissionError as error:
        raise CommandError(f"cannot use {error.filename}: {error.strerror}", CHECK_DIRECTORY) from None
    except KeyboardInterrupt:
        return 130
    if code == 0 and sys.stdout.isatty():
        with contextlib.suppress(OSError):  # the terminal may be gone: that is one of the ways to stop it
            os.write(sys.stdout.fileno(), b"\n  stopped\n")
    return code


def _refuse_cluster_directories(config: BrokerConfig) -> None:
    """A broker would take the folders of nodes in there for those of its topics, and one of these nodes that
    is told of no others would begin a cluster of its own.
    """
    from mainstem.config.quorum import BOOTSTRAP_SERVERS, VOTERS
    from mainstem.local_cluster.names import cluster_of, holds_a_cluster

    knows_others = bool(config.get(VOTERS) or config.get(BOOTSTRAP_SERVERS))
    for directory in config.log_dirs():
        if holds_a_cluster(directory):
            raise CommandError(
                f"{directory} holds a cluster of several nodes",
                f"mainstem up --nodes auto --data {directory} starts all of them",
            )
        cluster = cluster_of(directory)
        if cluster is not None and not knows_others:
            raise CommandError(
                f"{directory} is the data of one node of the cluster in {cluster}",
                f"mainstem up --nodes auto --data {cluster} starts all of them, mainstem up --config "
                f"{directory}.properties this one",
            )


def _format(config: BrokerConfig, cluster_id: str) -> None:
    """Before the first start of a node that is one of several."""
    from mainstem.broker.metadata.formatting import FormatError, Formatting, format_directories
    from mainstem.broker.metadata.metadata_directory import metadata_directory
    from mainstem.cli.storage.settings import directories
    from mainstem.cli.up.settings import CHECK_DIRECTORY
    from mainstem.cluster.releases import first_levels
    from mainstem.protocol.uuids import random_uuid
    from mainstem.storage.files.real_files import RealFiles

    try:
        for line in format_directories(
            RealFiles(),
            directories(config),
            metadata_directory(config),
            Formatting(cluster_id, config.get("node.id"), first_levels()),
            ignore_formatted=True,
            new_uuid=random_uuid,
            now_ms=time.time_ns() // 1_000_000,
        ):
            logger.info(line)
    except FormatError as error:
        raise in_two_lines(str(error), CHECK_DIRECTORY) from None


def _announce(node: Node, options: UpOptions) -> None:
    server = node.server
    listener = node.bound_listeners[0]
    host = listener.advertised_host
    bootstrap = f"{f'[{host}]' if ':' in host else host}:{listener.advertised_port}"
    metrics_url = server.monitor.url if server.monitor is not None else None
    data_dir = ",".join(os.path.abspath(directory) for directory in server.config.log_dirs())
    if sys.stdout.isatty():
        text = banner(bootstrap, data_dir, ephemeral=options.ephemeral, metrics_url=metrics_url)
    else:
        text = ready_line(bootstrap, server.config.get("node.id"), server.cluster_id, data_dir, metrics_url)
    try:
        print(text, flush=True)
    except OutputLostError as lost:
        logger.warning("standard output cannot be written (%s); ready at %s", lost.reason, bootstrap)
        abandon_output()


def _stop_before_ready(_signal: int, _frame: object) -> None:
    """A SIGTERM before the event loop has taken over the signals: leave through the `finally` blocks."""
    sys.exit(128 + signal.SIGTERM)


def _obey_hangup() -> None:
    """A closed terminal stops the broker as cleanly as SIGTERM; under nohup the signal stays ignored."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, os.kill, os.getpid(), signal.SIGTERM)


class _OwnerPipe:
    """Standard input as a leash: when the program that holds its other end is gone, the node goes too.

    A thread watches it from the first moment, for a node may wait long for others before it is ready. One
    that does not obey in time is killed: nobody is left who could.
    """

    def __init__(self) -> None:
        self.closed = False
        threading.Thread(target=self._watch, name="owner-pipe", daemon=True).start()

    def _watch(self) -> None:
        with contextlib.suppress(OSError):
            while os.read(sys.stdin.fileno(), 4096):
                pass
        self.closed = True
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_STOP_S)
        os.kill(os.getpid(), signal.SIGKILL)
