"""What `mainstem up` says when it is ready: a banner for a person, one stable line for a program.

The line is an interface (mainstem.testing and scripts parse it): fields are only ever added, before the last.
"""

from __future__ import annotations

import os
from pathlib import Path

from mainstem import __version__
from mainstem.cli.command_name import command_name

_BOLD, _DIM, _PLAIN = "\033[1m", "\033[2m", "\033[0m"


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
    option = "" if bootstrap == "localhost:9092" else f" -b {bootstrap}"
    place = f"{with_tilde(data_dir)}{' (removed at exit)' if ephemeral else ''}"
    command = command_name()
    rows = (
        ("bootstrap", in_bold(bootstrap)),
        ("data", place),
        *((("metrics", metrics_url),) if metrics_url is not None else ()),
        ("try", f"echo 'hello, world' | {command} produce greetings{option}"),
        ("", f"{command} consume greetings --from-beginning{option}"),
        ("stop", "Ctrl-C"),
    )
    lines = [row(label, text) for label, text in rows]
    title = f"  {in_bold(f'Mainstem {__version__}')}, ready for Kafka clients"
    return "\n".join(["", title, "", *lines, ""])


def row(label: str, text: str) -> str:
    """One fact for a terminal."""
    return f"  {_styled(_DIM, f'{label:<10}')} {text}"


def in_bold(text: str) -> str:
    return _styled(_BOLD, text)


def with_tilde(path: str) -> str:
    """The path as a person writes it."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(home + "/") else path


def _styled(style: str, text: str) -> str:
    return text if os.environ.get("NO_COLOR") else f"{style}{text}{_PLAIN}"
