"""Where each leader epoch begins in a log, kept in `leader-epoch-checkpoint`.

Followers and consumers find out with it from which offset on their history differs from the leader's. The
file is read on first use; an epoch is written to it when the first batch of that epoch arrives.
"""

import logging
import os
from bisect import bisect_right
from pathlib import Path

from mainstem.storage.files.checkpoints import (
    CheckpointError,
    format_entries,
    parse_entries,
    read_file,
    sync_path,
    write_atomically,
    write_file,
)
from mainstem.storage.files.files import Files

logger = logging.getLogger(__name__)

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochCache:
    """Pairs of epoch and start offset, both strictly growing."""

    __slots__ = ("_directory", "_entries", "_files", "_unsynced", "dirty")

    def __init__(self, files: Files, directory: str | Path) -> None:
        self._files = files
        self._directory = str(directory)
        self._entries: list[tuple[int, int]] | None = None
        self.dirty = False
        self._unsynced = False

    @property
    def path(self) -> str:
        return os.path.join(self._directory, FILE_NAME)

    def moved_to(self, directory: str) -> None:
        """The partition's folder has a new name."""
        self._directory = directory

    @property
    def entries(self) -> list[tuple[int, int]]:
        if self._entries is None:
            self._entries = self._load()
        return self._entries

    def _load(self) -> list[tuple[int, int]]:
        try:
            text = read_file(self._files, self.path).decode(errors="replace")
        except FileNotFoundError:
            return []
        entries: list[tuple[int, int]] = []
        try:
            for line in parse_entries(self.path, text):
                epoch, offset = map(int, line.split())
                entries.append((epoch, offset))
        except (CheckpointError, ValueError) as error:
            # The scan of a recovery fills it again; without one, the epochs start with the next leader.
            logger.warning("ignoring the leader epochs of %s: %s", self._directory, error)
            return []
        return entries

    @property
    def latest_epoch(self) -> int:
        """The newest epoch; -1 when there is none."""
        entries = self.entries
        return entries[-1][0] if entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Batches from `start_offset` on are of `epoch`. What contradicts the new entry is removed."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} cannot start at offset {start_offset}")
        entries = self.entries
        if entries and entries[-1][0] == epoch and entries[-1][1] <= start_offset:
            return
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        self.dirty = True

    def write(self) -> None:
        """Bring the file up to date if it is not. It survives a power failure only after `sync`."""
        if self.dirty:
            lines = [f"{epoch} {offset}" for epoch, offset in self.entries]
            content = format_entries(lines)
            if len(lines) == 1 and not self._files.exists(self.path):
                # There is nothing yet that a crash could lose, and a rename less counts with many partitions.
                write_file(self._files, self.path, content)
            else:
                write_atomically(self._files, self.path, content, sync=False)
            self.dirty = False
            self._unsynced = True

    def sync(self) -> None:
        """Make what `write` wrote durable. May run in a thread beside the one that writes."""
        if self._unsynced:
            self._unsynced = False
            try:
                for path in (self.path, self._directory):
                    sync_path(self._files, path)
            except FileNotFoundError:
                pass  # the partition was deleted meanwhile, and its folder renamed

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """`(epoch, end offset)` of the largest epoch not above the one asked for, as Kafka answers it."""
        entries = self.entries
        if epoch == UNDEFINED_EPOCH or not entries:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if entries[-1][0] == epoch:
            return epoch, log_end_offset
        above = bisect_right(entries, epoch, key=lambda entry: entry[0])
        if above == len(entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if above == 0:
            return epoch, entries[0][1]
        return entries[above - 1][0], entries[above][1]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch of the batch at `offset`; -1 when it is not known."""
        entries = self.entries
        found = bisect_right(entries, offset, key=lambda entry: entry[1])
        return entries[found - 1][0] if found else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that start at or after `end_offset`."""
        entries = self.entries
        while entries and entries[-1][1] >= end_offset:
            entries.pop()
            self.dirty = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs that ended before `start_offset`; the one it lies in now starts there."""
        entries = self.entries
        found = bisect_right(entries, start_offset, key=lambda entry: entry[1])
        if found and (found > 1 or entries[0][1] != start_offset):
            entries[:found] = [(entries[found - 1][0], start_offset)]
            self.dirty = True

    def clear(self) -> None:
        if self.entries:
            self._entries = []
            self.dirty = True
