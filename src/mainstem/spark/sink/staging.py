"""Record batches on their way from tasks to the driver: in the commit message, or in a file.

A file is written under a temporary name and renamed when it is whole, so what a message names is always
complete. It needs no fsync: after a crash of the machine Spark runs the micro-batch again. Layout, below the
staging location: QUERY/BATCH/PARTITION-ATTEMPT-RANDOM.staged, so that everything of a batch, dead attempts'
files included, goes with one folder.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import struct
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Self
from urllib.parse import quote

from mainstem.protocol.resources import TopicPartition
from mainstem.records.batch import crc_is_valid
from mainstem.spark.sink.errors import StagingError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

# Length of the topic's name, partition, length of the record batch; the name and the batch follow.
_FRAME = struct.Struct(">HiI")
_READ_BYTES = 1024 * 1024
_HADOOP_S3 = re.compile("^s3[an]://")

Frame = tuple[TopicPartition, bytearray]


@dataclass(frozen=True)
class Staged:
    """What one task has built: in `inline`, or in the file at `path`. `size` is checked when it is read."""

    inline: bytes | None
    path: str | None
    size: int
    records: int


class StagingWriter:
    """The record batches of one task. A file is begun when they are more than fits into a message."""

    def __init__(self, folder: str, name: str, inline_bytes: int) -> None:
        self._folder = folder
        self._name = name
        self._inline_bytes = inline_bytes
        self._size = 0
        self._records = 0
        self._file: _StagedFile | None = None
        self._memory = io.BytesIO()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.discard()

    def add(self, partition: TopicPartition, batch: bytearray, records: int) -> None:
        topic = partition[0].encode()
        head = _FRAME.pack(len(topic), partition[1], len(batch)) + topic
        self._size += len(head) + len(batch)
        self._records += records
        if self._file is None and self._size > self._inline_bytes:
            self._file = _StagedFile(self._folder, self._name)
            self._file.write(self._memory.getbuffer())
            self._memory = io.BytesIO()
        if self._file is None:
            self._memory.write(head)
            self._memory.write(batch)
        else:
            self._file.write(head)
            self._file.write(batch)

    def finish(self) -> Staged:
        if self._file is None:
            return Staged(self._memory.getvalue(), None, self._size, self._records)
        path = self._file.keep()
        self._file = None
        return Staged(None, path, self._size, self._records)


class _StagedFile:
    def __init__(self, folder: str, name: str) -> None:
        filesystem, path = open_location(folder)
        self._filesystem = filesystem
        self._path = f"{path}/{name}-{uuid.uuid4().hex}.staged"
        self._uri = f"{folder}{self._path.removeprefix(path)}"
        filesystem.create_dir(path, recursive=True)
        self._part = f"{self._path}.part"
        self._stream = filesystem.open_output_stream(self._part)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._stream.write(data)

    def keep(self) -> str:
        self._stream.close()
        self._filesystem.move(self._part, self._path)
        return self._uri

    def discard(self) -> None:
        with suppress(OSError):
            self._stream.close()
        with suppress(OSError):
            self._filesystem.delete_file(self._part)


def read_frames(staged: Iterable[Staged]) -> Iterator[Frame]:
    """Every record batch of these tasks in order, one at a time; StagingError where one is not as written."""
    for each in staged:
        if each.inline is not None:
            if len(each.inline) != each.size:
                raise StagingError(f"a message of {each.size} bytes arrived with {len(each.inline)}")
            yield from _frames(io.BytesIO(each.inline), each.size, "a commit message")
        else:
            assert each.path is not None
            filesystem, path = open_location(each.path)
            try:
                source = filesystem.open_input_stream(path, buffer_size=_READ_BYTES)
            except OSError as error:
                raise StagingError(
                    f"the staged file {each.path} cannot be read ({error}): the staging location has to be a "
                    "folder that the driver and all executors share; set stagingLocation to one"
                ) from None
            with source:
                yield from _frames(source, each.size, each.path)


def _frames(source: IO[bytes], size: int, where: str) -> Iterator[Frame]:
    while size:
        topic_length, partition, length = _FRAME.unpack(_read(source, _FRAME.size, where))
        topic = bytes(_read(source, topic_length, where)).decode()
        batch = bytearray(_read(source, length, where))
        if not crc_is_valid(batch):
            raise StagingError(f"a record batch in {where} is damaged: its checksum is wrong")
        size -= _FRAME.size + topic_length + length
        yield (topic, partition), batch


def _read(source: IO[bytes], count: int, where: str) -> bytes:
    data = source.read(count)
    if len(data) != count:
        raise StagingError(f"{where} ends too early: {count - len(data)} bytes are missing")
    return data


def batch_folder(location: str, query_id: str, batch_id: int) -> str:
    return f"{_query_folder(location, query_id)}/{batch_id}"


def remove_staged(location: str, query_id: str, batch_id: int) -> None:
    """Remove what was staged for this batch of the query and for earlier ones, dead attempts' files included.

    A folder that cannot be removed now is removed with a later batch.
    """
    folder = _query_folder(location, query_id)
    with suppress(OSError):
        if is_remote(location):
            _remove_remote(folder, batch_id)
            return
        # Without Arrow, which would have to be imported: most batches leave nothing here.
        for name in os.listdir(_local_path(folder)):
            if _is_done(name, batch_id):
                shutil.rmtree(os.path.join(_local_path(folder), name), ignore_errors=True)


def _remove_remote(folder: str, batch_id: int) -> None:
    from pyarrow.fs import FileSelector, FileType

    filesystem, path = open_location(folder)
    for info in filesystem.get_file_info(FileSelector(path, allow_not_found=True)):
        if info.type == FileType.Directory and _is_done(info.base_name, batch_id):
            with suppress(OSError):
                filesystem.delete_dir(info.path)


def _is_done(folder_name: str, batch_id: int) -> bool:
    return folder_name.isdecimal() and int(folder_name) <= batch_id


def is_remote(location: str) -> bool:
    """Whether it is a store behind a network, which takes its time to be asked."""
    return "://" in location and not location.startswith("file:")


def _local_path(location: str) -> str:
    return "/" + location.removeprefix("file:").lstrip("/") if location.startswith("file:") else location


def open_location(location: str) -> tuple[FileSystem, str]:
    """The file system of a path or URI, and the path in it."""
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem, LocalFileSystem

    if not is_remote(location):
        return LocalFileSystem(), _local_path(location)
    try:
        # Hadoop has several names for what is one store.
        filesystem, path = FileSystem.from_uri(_HADOOP_S3.sub("s3://", location))
    except (ArrowException, OSError) as error:
        raise StagingError(
            f"rows cannot be staged at {location} ({error}): set stagingLocation to a folder that the driver "
            "and all executors share, or to another store"
        ) from None
    return filesystem, path.rstrip("/")


def _query_folder(location: str, query_id: str) -> str:
    return f"{location.rstrip('/')}/{quote(query_id, safe='')}"
