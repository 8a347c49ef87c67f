"""`mainstem up --nodes N`: from the options to the nodes, and what is shown of them.

On a terminal it says where clients and the logs are, and a line for each change of a node. In a pipe each
change is a line that starts with `mainstem node`, and the line that starts with `mainstem ready` comes once
all nodes are up.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path

from mainstem import __version__
from mainstem.cli.command_name import command_name
from mainstem.cli.errors import CommandError, in_two_lines
from mainstem.cli.streams import OutputLostError, abandon_output, say
from mainstem.cli.up.banner import in_bold, row, with_tilde
from mainstem.cli.up.options import UpOptions
from mainstem.cli.up.settings import (
    CHECK_DIRECTORY,
    DEFAULT_HOST,
    DEFAULT_PORT,
    METRICS_PORT,
    default_data_dir,
    set_settings,
    where_to_look,
)
from mainstem.cli.up.supervisor import Member, State, Supervisor
from mainstem.config import ConfigError, load_properties, resolve
from mainstem.local_cluster.directory import ClusterDirectory, ClusterDirectoryError
from mainstem.local_cluster.ports import NoFreePortError
from mainstem.local_cluster.settings import PLACED, Plan


def run_cluster(options: UpOptions) -> int:
    """Run the nodes until SIGTERM or Ctrl-C, and return the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    temporary = Path(tempfile.mkdtemp(prefix="mainstem-")) if options.ephemeral and not options.data else None
    path = temporary or (Path(options.data).absolute() if options.data else _default_directory())
    directory = ClusterDirectory(path)
    try:
        return _run(options, directory)
    except (ClusterDirectoryError, NoFreePortError) as error:
        raise in_two_lines(str(error)) from None
    except OSError as error:
        raise CommandError(
            f"cannot use {error.filename or path}: {error.strerror or error}", CHECK_DIRECTORY
        ) from None
    except KeyboardInterrupt:
        return 130
    finally:
        directory.close()
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _run(options: UpOptions, directory: ClusterDirectory) -> int:
    given = _given_settings(options)
    nodes = directory.open(_count(options), lambda: _say_waiting(directory)) or _cores()
    first_port = DEFAULT_PORT if options.port is None else options.port
    if first_port + nodes - 1 > 65535:
        raise CommandError(
            f"--port {first_port} leaves no ports for {nodes} nodes", f"give {65536 - nodes} or less", 2
        )
    plan = directory.plan(options.host or DEFAULT_HOST, first_port, nodes, socket.gethostname())
    members = _members(options, directory, plan, given)
    directory.remember()
    show = _Display(options, directory, plan)
    supervisor = Supervisor(
        members,
        restart=options.restart,
        lock_fd=directory.lock_fd,
        tell=show.change,
        on_up=directory.has_been_up,
        on_all_up=show.all_up,
    )
    show.begin()
    code = supervisor.run(sys.stdin.fileno() if options.owner_pipe else None)
    if supervisor.refusal is not None:
        node_id, (message, hint) = supervisor.refusal
        others = ", nor can the others" if nodes > 1 else ""
        raise CommandError(
            f"node {node_id} cannot start{others}: {message}", hint or f"look at {directory.log(node_id)}"
        )
    return code


def _say_waiting(directory: ClusterDirectory) -> None:
    say(f"mainstem: nodes in {directory.path} are still running; waiting a moment for their end")


def _default_directory() -> Path:
    """Beside the data of a single broker, which looks at every folder in its own."""
    single = default_data_dir()
    return single.with_name(f"{single.name}-cluster")


def _count(options: UpOptions) -> int | None:
    """How many nodes were asked for; None where the machine decides."""
    return None if options.nodes in (None, "auto") else int(options.nodes)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _given_settings(options: UpOptions) -> dict[str, str]:
    """What the file and --set say to all nodes, checked as the nodes would, before any of them starts."""
    from_set = set_settings(options)
    try:
        from_file = load_properties(Path(options.config)) if options.config else {}
        _refuse_placed(from_file | from_set)
        place = Plan(
            options.host or DEFAULT_HOST, "", {1: DEFAULT_PORT}, {1: DEFAULT_PORT + 1}, {1: "node-1"}
        )
        _, warnings = resolve(from_file, from_set, place.settings(1))
    except ConfigError as error:
        raise in_two_lines(str(error), where_to_look(error)) from None
    for warning in warnings:
        say(f"mainstem: {warning}")
    return from_file | from_set


def _refuse_placed(given: dict[str, str]) -> None:
    for name in given:
        if name in PLACED:
            raise CommandError(
                f"{name} is given to each node by --nodes",
                "leave it out, or start each node with a --config file of its own (docs/cluster.md)",
                exit_code=2,
            )


def _members(
    options: UpOptions, directory: ClusterDirectory, plan: Plan, given: dict[str, str]
) -> list[Member]:
    new = directory.to_format()
    common = ["--log-format", options.log_format or "text"]
    if options.log_level is not None:
        common += ["--log-level", options.log_level]
    if not options.uvloop:
        common.append("--no-uvloop")
    members = []
    for node_id in plan.ports:
        settings = plan.settings(node_id) | given
        if options.metrics_port is not None:
            port = options.metrics_port and options.metrics_port + node_id - 1
            settings[METRICS_PORT] = str(port)
        directory.write_settings(node_id, settings)
        members.append(
            Member(
                node_id,
                ["--config", str(directory.properties(node_id)), *common],
                directory.log(node_id),
                ["--format-as", directory.cluster_id] if node_id in new else (),
            )
        )
    return members


class _Display:
    """What is printed of the cluster."""

    def __init__(self, options: UpOptions, directory: ClusterDirectory, plan: Plan) -> None:
        self._options = options
        self._directory = directory
        self._plan = plan
        self._for_person = sys.stdout.isatty()

    def begin(self) -> None:
        if not self._for_person:
            return
        path = with_tilde(str(self._directory.path))
        removed = " (removed at exit)" if self._options.ephemeral else ""
        count = len(self._plan.ports)
        self._print(
            "",
            f"  {in_bold(f'Mainstem {__version__}')}, a cluster of {count} node{'s' if count > 1 else ''}",
            "",
            row("data", f"{path}/node-1 ...{removed}"),
            row("logs", f"{path}/node-1.log ..."),
            "",
        )

    def change(self, node_id: int, state: State, remark: str) -> None:
        if self._for_person:
            place = f"{self._plan.address(node_id)}, {' and '.join(self._plan.roles(node_id))}"
            more = f"  {remark}" if remark else ""
            self._print(f"  node {node_id:<3} {state:<9} {place if state is State.STARTING else ''}{more}")
        else:
            self._print(f"mainstem node id={node_id} state={state}" + (f" remark={remark}" if remark else ""))

    def all_up(self) -> None:
        servers = self._plan.bootstrap_servers
        if not self._for_person:
            nodes, directory = len(self._plan.ports), self._directory
            identity = f"nodes={nodes} cluster={directory.cluster_id} data={directory.path}"
            self._print(f"mainstem ready bootstrap={servers} {identity}")
            return
        command = command_name()
        self._print(
            "",
            row("bootstrap", in_bold(servers)),
            row("try", f"echo 'hello, world' | {command} produce greetings -b {servers}"),
            row("", f"{command} cluster status -b {servers}"),
            row("stop", "Ctrl-C"),
            "",
        )

    def _print(self, *lines: str) -> None:
        try:
            print("\n".join(lines), flush=True)
        except (
            OutputLostError
        ):  # the terminal is gone; the nodes are told so by the signal that comes with it
            abandon_output()
