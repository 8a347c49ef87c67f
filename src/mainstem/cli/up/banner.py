"""What `mainstem up` says when it is ready: a banner for a person, one stable line for a program.

The line is an interface (mainstem.testing and scripts parse it): fields are only ever added, before the last.
"""

from __future__ import annotations

import os
from pathlib import Path

from mainstem import __version__
from mainstem.cli.command_name import command_name


def ready_line(
    bootstrap: str, node_id: int, cluster_id: str, data_dir: str, metrics_url: str | None = None
) -> str:
    """`mainstem ready bootstrap=HOST:PORT node=ID cluster=ID data=DIR`; data is last: it may hold spaces.
    Before it, `metrics=URL` when there is a metrics port.
    """
    metrics = f" metrics={metrics_url}" if metrics_url is not None else ""
    return (
        f"mainstem ready bootstrap={bootstrap} node={node_id} cluster={cluster_id}{metrics} data={data_dir}"
    )


def banner(bootstrap: str, data_dir: str, *, ephemeral: bool, metrics_url: str | None = None) -> str:
    """A few lines for a terminal: where it listens, where the data is, what to type next."""
    bold, dim, reset = ("", "", "") if os.environ.get("NO_COLOR") else ("\033[1m", "\033[2m", "\033[0m")
    option = "" if bootstrap == "localhost:9092" else f" -b {bootstrap}"
    place = f"{_with_tilde(data_dir)}{' (removed at exit)' if ephemeral else ''}"
    command = command_name()
    rows = (
        ("bootstrap", f"{bold}{bootstrap}{reset}"),
        ("data", place),
        *((("metrics", metrics_url),) if metrics_url is not None else ()),
        ("try", f"echo 'hello, world' | {command} produce greetings{option}"),
        ("", f"{command} consume greetings --from-beginning{option}"),
        ("stop", "Ctrl-C"),
    )
    lines = [f"  {dim}{label:<10}{reset} {text}" for label, text in rows]
    return "\n".join(["", f"  {bold}Mainstem {__version__}{reset}, ready for Kafka clients", "", *lines, ""])


def _with_tilde(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(home + "/") else path
