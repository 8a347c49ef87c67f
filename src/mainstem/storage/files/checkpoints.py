"""The small text files beside the logs: offsets, a partition's topic id, the clean-shutdown marker.

Each is written whole into a new file that then takes the place of the old one, so a crash leaves one or the
other.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.resources import TopicPartition
from mainstem.protocol.uuids import uuid_from_text, uuid_to_text
from mainstem.storage.files.files import AnyPath, Files

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

logger = logging.getLogger(__name__)

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
PARTITION_METADATA = "partition.metadata"
_PIECE_BYTES = 64 * 1024


class CheckpointError(ValueError):
    """A checkpoint file that does not have its format."""


def read_file(files: Files, path: AnyPath) -> bytes:
    """All that is in a file."""
    fd = files.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = bytearray()
        while piece := files.pread(fd, _PIECE_BYTES, len(content)):
            content += piece
        return bytes(content)
    finally:
        files.close(fd)


def write_file(files: Files, path: AnyPath, data: ReadableBuffer, *, sync: bool = False) -> None:
    """Have a file with this content and no other. A crash may leave a part of it."""
    fd = files.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_all(files, fd, data)
        if sync:
            files.fsync(fd)
    finally:
        files.close(fd)


def write_all(files: Files, fd: int, data: ReadableBuffer) -> None:
    """Write all of it behind what was written last."""
    view = memoryview(data)
    while view:
        view = view[files.write(fd, view) :]


def write_atomically(files: Files, path: AnyPath, data: bytes, *, sync: bool = True) -> None:
    """Replace the file by one with this content; with `sync`, it also survives a power failure."""
    temporary = f"{os.fspath(path)}.tmp"
    write_file(files, temporary, data, sync=sync)
    files.replace(temporary, path)
    if sync:
        sync_path(files, os.path.dirname(path))


def sync_path(files: Files, path: AnyPath) -> None:
    """Make a file's content, or the names in a directory, survive a power failure."""
    fd = files.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        files.fsync(fd)
    finally:
        files.close(fd)


def format_entries(lines: list[str]) -> bytes:
    """Version 0 of a checkpoint: the version, the number of entries, the entries."""
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode()


def parse_entries(path: str | Path, text: str) -> list[str]:
    """The entries of a checkpoint, their number checked."""
    if not text:
        return []
    if not text.endswith("\n"):
        # Of the last number a part may be missing, and it would be believed.
        raise CheckpointError(f"{path} is cut off")
    lines = text.split("\n")[:-1]
    if lines[0].strip() != "0":
        raise CheckpointError(f"{path} has version {lines[0]!r}, expected 0")
    entries = lines[2:]
    if len(lines) < 2 or lines[1].strip() != str(len(entries)):
        raise CheckpointError(f"{path} does not have the number of entries it names")
    return entries


def write_offsets(
    files: Files, path: Path, offsets: Mapping[TopicPartition, int], *, sync: bool = True
) -> None:
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    write_atomically(files, path, format_entries(lines), sync=sync)


def read_offsets(files: Files, path: Path) -> dict[TopicPartition, int]:
    """The checkpoint's offsets; empty when there is no such file."""
    try:
        text = read_file(files, path).decode(errors="replace")
    except FileNotFoundError:
        return {}
    offsets: dict[TopicPartition, int] = {}
    for line in parse_entries(path, text):
        try:
            topic, partition, offset = line.split()
            offsets[topic, int(partition)] = int(offset)
        except ValueError:
            raise CheckpointError(f"{path} has a malformed line: {line!r}") from None
    return offsets


def write_partition_metadata(files: Files, directory: str | Path, topic_id: bytes) -> None:
    """The topic id, so that a folder of a deleted topic is not taken for one of a new topic of the same name.

    A new file in a new folder: there is no old content that a crash could lose.
    """
    text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
    write_file(files, os.path.join(directory, PARTITION_METADATA), text.encode())


def read_partition_metadata(files: Files, directory: str | Path) -> bytes | None:
    """The topic id in a partition's folder; None (and a warning) when the file is missing or damaged."""
    path = os.path.join(directory, PARTITION_METADATA)
    try:
        text = read_file(files, path).decode(errors="replace")
    except FileNotFoundError:
        return None
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if "topic_id" not in fields:
        return None
    try:
        return uuid_from_text(fields["topic_id"].strip())
    except ProtocolError as error:
        logger.warning("ignoring %s: %s", path, error)
        return None


def write_clean_shutdown(files: Files, directory: Path, broker_epoch: int) -> None:
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    write_atomically(files, directory / CLEAN_SHUTDOWN, content.encode())


def take_clean_shutdown(files: Files, directory: Path) -> int | None:
    """Remove the marker; the broker epoch in it (-1 if unreadable), or None when there was no marker."""
    path = directory / CLEAN_SHUTDOWN
    try:
        text = read_file(files, path).decode(errors="replace")
    except FileNotFoundError:
        return None
    files.unlink(path)
    try:
        return int(json.loads(text)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1
