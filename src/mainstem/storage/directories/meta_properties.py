"""`meta.properties`: which cluster, node and directory a log directory belongs to (version 1).

Checked at every start, so that a directory of another cluster is never written to by mistake.
"""

from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.uuids import uuid_from_text, uuid_to_text
from mainstem.storage.errors import LogDirInvalidError
from mainstem.storage.files.checkpoints import read_file, write_atomically
from mainstem.storage.files.files import Files

FILE_NAME = "meta.properties"
_VERSION = "1"


class MetaProperties(Struct, frozen=True):
    """The content of the file."""

    cluster_id: str
    node_id: int
    directory_id: bytes


def write_meta_properties(files: Files, directory: Path, properties: MetaProperties, now_ms: int) -> None:
    written = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    lines = [
        "#",
        f"#{written}",
        f"node.id={properties.node_id}",
        f"directory.id={uuid_to_text(properties.directory_id)}",
        f"version={_VERSION}",
        f"cluster.id={properties.cluster_id}",
        "",
    ]
    write_atomically(files, directory / FILE_NAME, "\n".join(lines).encode())


def read_meta_properties(files: Files, directory: Path) -> MetaProperties | None:
    """The content, None without such a file; LogDirInvalidError when it is not one of version 1."""
    path = directory / FILE_NAME
    try:
        text = read_file(files, path).decode(errors="replace")
    except FileNotFoundError:
        return None
    fields: dict[str, str] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith(("#", "!")):
            name, _, value = line.partition("=")
            fields[name.strip()] = value.strip()
    if fields.get("version") != _VERSION:
        raise LogDirInvalidError(
            f"{path} has version {fields.get('version')!r}; only version 1 is understood"
        )
    try:
        return MetaProperties(
            fields["cluster.id"], int(fields["node.id"]), uuid_from_text(fields["directory.id"])
        )
    except (KeyError, ValueError, ProtocolError) as error:
        raise LogDirInvalidError(f"{path} is not complete: {error}") from None
