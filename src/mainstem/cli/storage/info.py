"""`mainstem storage info`: what the directories of a node are. It prints what kafka-storage prints."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import typer

from mainstem.cli.storage.settings import directories, node_config
from mainstem.protocol.uuids import uuid_to_text
from mainstem.storage.directories.meta_properties import MetaProperties, read_meta_properties
from mainstem.storage.errors import LogDirInvalidError
from mainstem.storage.files.real_files import RealFiles


def show(path: Path) -> None:
    """Print it; the exit code says whether there is a problem."""
    paths = directories(node_config(path))
    folders = [directory for directory in paths if directory.is_dir()]
    problems: list[str] = []
    first: MetaProperties | None = None
    for directory in paths:
        meta = _look_at(directory, problems)
        if meta is not None:
            problems.extend(_mismatches(first or meta, meta))
            first = first or meta
    if folders:
        _print("Found log directory:" if len(folders) == 1 else "Found log directories:", map(str, folders))
    if first is not None:
        fields = (
            f"cluster.id={first.cluster_id}, directory.id={uuid_to_text(first.directory_id)}, "
            f"node.id={first.node_id}, version=1"
        )
        print(f"Found metadata: {{{fields}}}\n")
    if problems:
        _print("Found problem:" if len(problems) == 1 else "Found problems:", problems)
        raise typer.Exit(1)


def _look_at(directory: Path, problems: list[str]) -> MetaProperties | None:
    if not directory.is_dir():
        problems.append(
            f"{directory} is not a directory" if directory.exists() else f"{directory} does not exist"
        )
        return None
    try:
        meta = read_meta_properties(RealFiles(), directory)
    except (LogDirInvalidError, OSError) as error:
        problems.append(f"Error loading {directory / 'meta.properties'}: {error}")
        return None
    if meta is None:
        problems.append(f"{directory} is not formatted.")
    return meta


def _mismatches(first: MetaProperties, meta: MetaProperties) -> list[str]:
    if meta.cluster_id != first.cluster_id:
        return ["Mismatched cluster IDs between storage directories."]
    if meta.node_id != first.node_id:
        return ["Mismatched node IDs between storage directories."]
    return []


def _print(title: str, lines: Iterable[str]) -> None:
    print(title)
    for line in lines:
        print(f"  {line}")
    print()
