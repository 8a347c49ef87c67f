"""Putting a cleaned segment in the place of the old ones, so that a crash leaves the ones or the other.

The process that cleans leaves files named `.cleaned`, which are on disk. Then, in this order:

1. `prepare`: a list of what replaces what (`.replaces`) is brought to disk, the files become `.swap`, and the
   folder is synced. Until then a start throws all of it away; from then on it completes the rest.
2. `install`: the old files become `.deleted`, the new ones lose their suffix. The renames may reach the disk
   in any order or not at all: the list says what each file is. It waits for no disk, so it runs on the event
   loop, between two requests.
3. `settle`: the folder is synced, then the list goes, and the folder is synced again.

Apache Kafka has no list, and a start completes its swaps by its rule (`recovery`).
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from mainstem.storage.cleaner.jobs import CleanedGroup
from mainstem.storage.cleaner.names import CLEANED_SUFFIX, REPLACES_SUFFIX, SWAP_SUFFIX
from mainstem.storage.files.checkpoints import sync_path, write_atomically
from mainstem.storage.files.deletion import remove_if_there
from mainstem.storage.files.files import Files
from mainstem.storage.producers.producer_state import SNAPSHOT_SUFFIX
from mainstem.storage.producers.transaction_index import TXN_INDEX_SUFFIX
from mainstem.storage.segments.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
)

if TYPE_CHECKING:
    from mainstem.storage.log import Log

# Of a segment, without the snapshot of its producers; the log comes first.
FILE_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


class Replacement(Struct, frozen=True):
    """The list: base offset and size of the new segment with the suffixes of its files, and base offset and
    size of each old one.
    """

    base_offset: int
    size: int
    suffixes: list[str]
    replaced: list[tuple[int, int]]


def stem(directory: str, base_offset: int) -> str:
    return f"{directory}/{base_offset:020d}"


def is_current(log: "Log", group: CleanedGroup, old: list[Segment]) -> bool:
    """Whether the log still has the very segments that were cleaned, and in one row."""
    return len(old) == len(group.bases) and log.segments.are_in_a_row(old)


def prepare(files: Files, directory: str, group: CleanedGroup, sizes: list[int]) -> None:
    """Step 1. It waits for the disk and touches nothing that a reader uses: it belongs into a thread."""
    base = group.bases[0]
    suffixes = [suffix for suffix in FILE_SUFFIXES if suffix != TXN_INDEX_SUFFIX]
    if group.has_transaction_index:
        suffixes.append(TXN_INDEX_SUFFIX)
    replaced = list(zip(group.bases, sizes, strict=True))
    content = msgspec.json.encode(Replacement(base, group.size, suffixes, replaced))
    try:
        write_atomically(files, stem(directory, base) + REPLACES_SUFFIX, content)
        for suffix in suffixes:
            path = stem(directory, base) + suffix
            files.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
        sync_path(files, directory)
    except OSError:
        throw_away(files, directory, base)
        raise


def install(log: "Log", group: CleanedGroup, now_ms: int) -> Segment:
    """Step 2: the log has the new segment from now on. An error takes the directory offline, as nobody knows
    then which files are where; the next start completes the swap.
    """
    base = group.bases[0]
    number = log.segments.number_of(base)
    old = log.segments.in_order[number : number + len(group.bases)]
    try:
        # What is known of producers at the beginning of the new segment stays.
        log.segments.delete_files(old, SNAPSHOT_SUFFIX, now_ms)
        for suffix in FILE_SUFFIXES:
            if suffix != TXN_INDEX_SUFFIX or group.has_transaction_index:
                path = stem(log.directory, base) + suffix
                log.environment.files.rename(path + SWAP_SUFFIX, path)
    except OSError as error:
        log.health.fail(f"cannot swap in the cleaned segment {base} of {log.name}: {error}")
        log.health.check()
    new = log.segments.replace(old, group.size, group.max_timestamp, group.max_timestamp_offset)
    aborted = log.producers.aborted
    for segment in old:
        aborted.forget(segment.base_offset)
    if group.has_transaction_index:
        aborted.renew(base)
    return new


def settle(files: Files, directory: str, base_offset: int) -> None:
    """Step 3, in a thread."""
    sync_path(files, directory)
    files.unlink(stem(directory, base_offset) + REPLACES_SUFFIX)
    sync_path(files, directory)


def undo(files: Files, directory: str, group: CleanedGroup) -> None:
    """Take step 1 back. From the first rename on a start would throw all of it away."""
    path = stem(directory, group.bases[0])
    files.rename(path + LOG_SUFFIX + SWAP_SUFFIX, path + LOG_SUFFIX + CLEANED_SUFFIX)
    sync_path(files, directory)
    throw_away(files, directory, group.bases[0])


def throw_away(files: Files, directory: str, base_offset: int) -> None:
    """Remove a swap of which a file is still `.cleaned`. Without these files the list would say that the swap
    was completed, so it goes first; and without `.cleaned` the others would count, so those go last.
    """
    path = stem(directory, base_offset)
    remove_if_there(files, path + REPLACES_SUFFIX)
    sync_path(files, directory)
    for kind in (SWAP_SUFFIX, CLEANED_SUFFIX):
        for suffix in FILE_SUFFIXES:
            remove_if_there(files, path + suffix + kind)
        sync_path(files, directory)


def remove_leftovers(files: Files, directory: str) -> None:
    """Remove what a process that has ended, or given up, left of its work; but not of a swap that has begun,
    which only the next start can judge.
    """
    with suppress(OSError):  # the partition may be deleted, and the next start does it again
        names = files.listdir(directory)
        if not any(name.endswith(REPLACES_SUFFIX) for name in names):
            for name in names:
                if name.endswith(CLEANED_SUFFIX):
                    remove_if_there(files, os.path.join(directory, name))


def discard(files: Files, directory: str, group: CleanedGroup) -> None:
    """Remove the files of a result that nobody wants any more. They are not prepared yet."""
    for suffix in FILE_SUFFIXES:
        remove_if_there(files, stem(directory, group.bases[0]) + suffix + CLEANED_SUFFIX)
