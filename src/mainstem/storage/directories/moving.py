"""Moving a log to another directory of its node while it is written and read.

The files are copied as they are into a folder named `-future`, piece by piece in a thread, until little is
left. Then, in one go, the rest is copied and the copy takes the place of the original; the log itself, with
all that it knows, stays the same object and only has another folder. A crash at any moment leaves one of the
two folders whole, and a marker in the copy says which one counts when both have the partition's name.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.uuids import uuid_from_text, uuid_to_text
from mainstem.storage.directories.log_dir import LogDir
from mainstem.storage.files.checkpoints import (
    PARTITION_METADATA,
    read_file,
    sync_path,
    write_atomically,
    write_file,
)
from mainstem.storage.files.deletion import remove_path
from mainstem.storage.files.files import Files
from mainstem.storage.leader_epoch_cache import FILE_NAME as LEADER_EPOCHS
from mainstem.storage.log import Log
from mainstem.storage.segments.segment import LOG_SUFFIX, SEGMENT_SUFFIXES, Segment

MARKER = "moved-from"
# What one piece of work in a thread copies, and what may be left to copy while everything else waits.
PIECE_BYTES = 8 << 20
TAIL_BYTES_MAX = 256 << 10
_CHUNK_BYTES = 1 << 20
_NEVER = 2**63 - 1
_SIDE_SUFFIXES = tuple(suffix for suffix in SEGMENT_SUFFIXES if suffix != LOG_SUFFIX)


class _Piece(NamedTuple):
    """Bytes of one segment; `completes` when its indexes are to be copied behind them."""

    segment: Segment
    start: int
    end: int
    completes: bool


class MoveCancelledError(Exception):
    """The move was given up while a piece of it was copied."""


class CopyWork:
    """Copies some pieces and makes them durable; `run` it in a thread, then hand it to `LogMove.copied`."""

    def __init__(self, move: "LogMove", gone: list[Segment], pieces: list[_Piece], end_offset: int) -> None:
        self._move = move
        self._gone = gone
        self.pieces = pieces
        # Where the log ends for which all is copied and durable when this is done; -1 when more is to come.
        self.end_offset = end_offset
        self.size = sum(piece.end - piece.start for piece in pieces)

    def run(self) -> None:
        """KAFKA_STORAGE_ERROR when either of the two directories refuses; MoveCancelledError."""
        move = self._move
        for segment in self._gone:
            remove_segment_files(move.files, move.folder, segment.base_offset)
        for piece in self.pieces:
            move.copy_bytes(piece.segment, piece.start, piece.end, sync=True)
            if piece.completes:
                move.copy_side_files(piece.segment, sync=True)
        try:
            sync_path(move.files, move.folder)
        except OSError as error:
            raise move.target_refuses(error, f"cannot sync {move.folder}") from error


class LogMove:
    """One log on its way to another directory. `next_copy` and `finish` belong to the event loop."""

    def __init__(self, log: Log, source: LogDir, target: LogDir, folder: str) -> None:
        self.log = log
        self.files = log.environment.files
        self.source = source
        self.target = target
        self.folder = folder
        self.cancelled = False
        # The log's end up to which the copy was durable when it was last complete.
        self.durable_offset = -1
        self._copied: dict[Segment, int] = {}
        self._complete: set[Segment] = set()
        self._truncations = log.truncations

    @property
    def size(self) -> int:
        """Bytes of the copy."""
        return sum(self._copied.values())

    @property
    def left_bytes(self) -> int:
        """Bytes of the log that are not in the copy."""
        return sum(segment.size - self._copied.get(segment, 0) for segment in self.log.segments)

    @property
    def offset_lag(self) -> int:
        """How many offsets the copy is behind; whole index intervals where a segment is half copied."""
        log = self.log
        for segment in log.segments:
            copied = self._copied.get(segment, 0)
            if copied < segment.size:
                base = segment.boundary_before(0, copied)[1] if copied else segment.base_offset
                return log.log_end_offset - base
        return 0

    def begin(self) -> None:
        """Make the folder; from now on a restart begins the move again."""
        try:
            remove_marker(self.files, self.log.directory)  # of an earlier move, whose end a crash has cut off
        except OSError as error:
            raise self.source.health.refuse(error, f"cannot remove a file of {self.log.name}") from error
        try:
            self.files.mkdir(self.folder)
            self._copy_file(PARTITION_METADATA)
            directory_id = self.source.meta.directory_id if self.source.meta is not None else bytes(16)
            write_atomically(
                self.files, os.path.join(self.folder, MARKER), uuid_to_text(directory_id).encode()
            )
            sync_path(self.files, self.target.path)
        except OSError as error:
            raise self.target_refuses(error, f"cannot make {self.folder}") from error

    def next_copy(self, limit: int = PIECE_BYTES) -> CopyWork | None:
        """The next piece of work; None when the copy has all that the log has at this moment."""
        log = self.log
        there = set(log.segments)
        gone = [segment for segment in self._copied if segment not in there]
        if log.truncations != self._truncations:
            gone, self._truncations = list(self._copied), log.truncations
        for segment in gone:
            del self._copied[segment]
            self._complete.discard(segment)
        pieces: list[_Piece] = []
        for segment in log.segments:
            if segment in self._complete:
                continue
            start = self._copied.get(segment, 0)
            end = min(segment.size, start + limit)
            completes = segment is not log.segments.active and end == segment.size
            if end > start or completes or segment not in self._copied:
                pieces.append(_Piece(segment, start, end, completes))
            limit -= end - start
            if limit <= 0:
                break
        if not pieces and not gone and self.durable_offset == log.log_end_offset:
            return None
        return CopyWork(self, gone, pieces, log.log_end_offset if limit > 0 else -1)

    def copied(self, work: CopyWork) -> None:
        """The work was done."""
        for piece in work.pieces:
            self._copied[piece.segment] = piece.end
            if piece.completes:
                self._complete.add(piece.segment)
        if work.end_offset >= 0:
            self.durable_offset = work.end_offset

    @property
    def may_finish(self) -> bool:
        """Whether so little is left that it can be copied in one go."""
        return (
            self.durable_offset >= 0
            and self._truncations == self.log.truncations
            and self._copied.keys() <= set(self.log.segments)
            and self.left_bytes <= TAIL_BYTES_MAX
        )

    def finish(self) -> Iterator[str]:
        """Put the copy in the place of the original. It must run to its end before anything else touches the
        log; it yields after every step, with its name, where a crash would leave something else behind.
        """
        log, target = self.log, self.target.health
        # What somebody was promised to be on disk must be so in the copy before it counts.
        config = log.config
        sync = (
            log.recovery_point > self.durable_offset or min(config.flush_messages, config.flush_ms) < _NEVER
        )
        self._copy_rest(sync)
        yield "the rest is copied"
        final = str(self.target.path / log.name)
        try:
            log.leader_epochs.write()
            self._copy_file(LEADER_EPOCHS)
            yield "the leader epochs are copied"
            self.files.rename(self.folder, final)
            if sync:
                sync_path(self.files, os.path.join(final, LEADER_EPOCHS))
                sync_path(self.files, final)
                sync_path(self.files, self.target.path)
        except OSError as error:
            raise self.target_refuses(error, f"cannot put {self.folder} in place") from error
        log.moved_to(final, target, self.durable_offset)
        yield "the copy has the partition's name"

    def _copy_rest(self, sync: bool) -> None:
        log = self.log
        for segment in log.segments:
            if segment not in self._complete:
                self.copy_bytes(segment, self._copied.get(segment, 0), segment.size, sync=sync)
                try:
                    segment.write_indexes()
                except OSError as error:
                    raise self.source.health.refuse(error, f"cannot write an index of {log.name}") from error
                self.copy_side_files(segment, sync=sync)
                self._copied[segment] = segment.size
        if sync:
            self.durable_offset = log.log_end_offset

    def settle(self, old_folder: str, retired: str) -> Iterator[str]:
        """What is left to do when the log has its new folder: the original goes. In a thread; with the names
        of the steps, as `finish`. OSError: the next start does it, the marker tells it to.
        """
        final = str(self.target.path / self.log.name)
        sync_path(self.files, self.target.path)
        yield "the new name is durable"
        self.files.rename(old_folder, retired)
        sync_path(self.files, self.source.path)
        yield "the original is retired"
        remove_marker(self.files, final)
        yield "the marker is gone"

    # ---- copying

    def copy_bytes(self, segment: Segment, start: int, end: int, *, sync: bool) -> None:
        """Copy a part of a segment's file; a segment that is gone meanwhile is no error."""
        try:
            handle = segment.file()
        except FileNotFoundError:
            return
        except OSError as error:
            raise self.source.health.refuse(error, f"cannot read {segment}") from error
        with self._open_copy(segment, LOG_SUFFIX) as fd:
            position = start
            while position < end:
                try:
                    data = self.files.pread(handle.fd, min(_CHUNK_BYTES, end - position), position)
                except OSError as error:
                    raise self.source.health.refuse(error, f"cannot read {segment}") from error
                if not data:
                    break  # it was cut meanwhile: the move begins again
                self._write(fd, data, position)
                position += len(data)
            if sync:
                self._sync(fd)

    def copy_side_files(self, segment: Segment, *, sync: bool) -> None:
        """Copy the indexes and the producer snapshot of a segment, as far as it has them."""
        for suffix in _SIDE_SUFFIXES:
            try:
                data = read_file(self.files, segment.path(suffix))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self.source.health.refuse(error, f"cannot read {segment.path(suffix)}") from error
            with self._open_copy(segment, suffix) as fd:
                try:
                    self.files.ftruncate(fd, 0)
                except OSError as error:
                    raise self.target_refuses(error, f"cannot write to {self.folder}") from error
                self._write(fd, data, 0)
                if sync:
                    self._sync(fd)

    def target_refuses(self, error: OSError, action: str) -> Exception:
        """What to raise when the copy cannot be written. A folder that was taken away is no failing disk."""
        if self.cancelled:
            return MoveCancelledError(self.log.name)
        return self.target.health.refuse(error, action)

    @contextmanager
    def _open_copy(self, segment: Segment, suffix: str) -> Iterator[int]:
        path = f"{self.folder}/{segment.base_offset:020d}{suffix}"
        try:
            fd = self.files.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self.target_refuses(error, f"cannot make {path}") from error
        try:
            yield fd
        finally:
            self.files.close(fd)

    def _write(self, fd: int, data: bytes, position: int) -> None:
        view = memoryview(data)
        try:
            while view:
                written = self.files.pwrite(fd, view, position)
                view = view[written:]
                position += written
        except OSError as error:
            raise self.target_refuses(error, f"cannot write to {self.folder}") from error

    def _sync(self, fd: int) -> None:
        try:
            self.files.fsync(fd)
        except OSError as error:
            # The kernel may have dropped what it could not write, whatever the error is called.
            self.target.health.fail(f"fsync in {self.folder} failed: {error}")
            raise self.target_refuses(error, f"cannot sync {self.folder}") from error

    def _copy_file(self, name: str) -> None:
        try:
            content = read_file(self.files, os.path.join(self.log.directory, name))
        except FileNotFoundError:
            return  # not every log has one
        write_file(self.files, os.path.join(self.folder, name), content)


def remove_segment_files(files: Files, folder: str, base_offset: int) -> None:
    for suffix in SEGMENT_SUFFIXES:
        remove_path(files, f"{folder}/{base_offset:020d}{suffix}")


# ---- after a restart


def moved_from(files: Files, folder: str | Path) -> bytes | None:
    """The id of the directory that this folder was moved from, if that move may not have come to its end."""
    try:
        return uuid_from_text(read_file(files, os.path.join(folder, MARKER)).decode(errors="replace").strip())
    except (FileNotFoundError, ProtocolError):
        return None


def remove_marker(files: Files, folder: str | Path) -> None:
    path = os.path.join(folder, MARKER)
    if files.exists(path):
        files.unlink(path)
        sync_path(files, folder)


def superseded(files: Files, holders: list[tuple[LogDir, Path]]) -> tuple[LogDir, Path] | None:
    """Of a partition that is in two directories: the folder that a move has replaced; None when no move says
    so, and somebody else must have put one of them there.
    """
    if len(holders) != 2:
        return None
    (first, first_folder), (second, second_folder) = holders
    first_came = second.meta is not None and moved_from(files, first_folder) == second.meta.directory_id
    second_came = first.meta is not None and moved_from(files, second_folder) == first.meta.directory_id
    if first_came == second_came:
        return None
    return holders[1] if first_came else holders[0]
