"""What a start does with a swap of segments that a crash has broken off: undone if it was not prepared yet,
completed otherwise. A folder of Apache Kafka's is treated by Kafka's own rule.

Every step may itself be broken off by a crash, and is then done again.
"""

import logging
import os
from collections.abc import Iterable

import msgspec

from mainstem.storage.cleaner.names import CLEANED_SUFFIX, REPLACES_SUFFIX, SWAP_SUFFIX
from mainstem.storage.cleaner.swap import FILE_SUFFIXES, Replacement, stem, throw_away
from mainstem.storage.files.checkpoints import read_file, sync_path
from mainstem.storage.files.deletion import remove_if_there
from mainstem.storage.files.file_range import FileHandle
from mainstem.storage.files.files import Files
from mainstem.storage.segments.scan import iter_batch_headers
from mainstem.storage.segments.segment import LOG_SUFFIX

logger = logging.getLogger(__name__)

_SUFFIXES = (CLEANED_SUFFIX, SWAP_SUFFIX, REPLACES_SUFFIX)
_BASE_DIGITS = 20


def is_broken_off(names: Iterable[str]) -> bool:
    """Whether these files of a partition's folder show a swap that did not get to its end."""
    return any(name.endswith(_SUFFIXES) and name[:_BASE_DIGITS].isdigit() for name in names)


def recover_swaps(files: Files, directory: str) -> None:
    """Bring the folder into order; no file is left then that is not a segment's."""
    names = {name for name in files.listdir(directory) if name[:_BASE_DIGITS].isdigit()}
    for name in sorted(names):
        if name.endswith(REPLACES_SUFFIX):
            _recover_listed(files, directory, int(name[:_BASE_DIGITS]), names)
    names = {name for name in files.listdir(directory) if name[:_BASE_DIGITS].isdigit()}
    _recover_unlisted(files, directory, names)
    sync_path(files, directory)
    for name in names:
        if name.endswith(REPLACES_SUFFIX):  # last: until now a crash would have needed it
            remove_if_there(files, os.path.join(directory, name))
    sync_path(files, directory)


def _recover_listed(files: Files, directory: str, base_offset: int, names: set[str]) -> None:
    """A swap of ours. While a file is still `.cleaned`, no old one has been touched."""
    prefix = f"{base_offset:020d}"
    path = stem(directory, base_offset)
    if any(f"{prefix}{suffix}{CLEANED_SUFFIX}" in names for suffix in FILE_SUFFIXES):
        logger.info("throwing away the cleaned segment %d of %s: it was not complete", base_offset, directory)
        throw_away(files, directory, base_offset)
        return
    try:
        replacement = msgspec.json.decode(read_file(files, path + REPLACES_SUFFIX), type=Replacement)
    except msgspec.DecodeError as error:
        logger.warning("ignoring %s: %s", path + REPLACES_SUFFIX, error)
        return
    is_installed = not files.exists(path + LOG_SUFFIX + SWAP_SUFFIX)
    if is_installed and _size_of(files, path + LOG_SUFFIX) != replacement.size:
        logger.warning("ignoring %s: it is of another segment", path + REPLACES_SUFFIX)
        return
    logger.info("completing the swap of the cleaned segment %d of %s", base_offset, directory)
    for base, size in replacement.replaced:
        if base != base_offset:
            _remove_replaced(files, directory, base, size)
    if not is_installed:
        for suffix in FILE_SUFFIXES:
            remove_if_there(files, path + suffix)
    for suffix in FILE_SUFFIXES:
        if suffix not in replacement.suffixes:
            remove_if_there(files, path + suffix)
        elif files.exists(path + suffix + SWAP_SUFFIX):
            files.rename(path + suffix + SWAP_SUFFIX, path + suffix)


def _remove_replaced(files: Files, directory: str, base_offset: int, size: int) -> None:
    """Remove a segment that was replaced, unless there is another one under its name by now."""
    path = stem(directory, base_offset)
    if _size_of(files, path + LOG_SUFFIX) not in (size, None):
        return
    for suffix in reversed(FILE_SUFFIXES):  # the log last: it is what tells whose the others are
        remove_if_there(files, path + suffix)


def _size_of(files: Files, path: str) -> int | None:
    try:
        return files.stat(path).st_size
    except FileNotFoundError:
        return None


def _recover_unlisted(files: Files, directory: str, names: set[str]) -> None:
    """Kafka's rule: a swap counts if no file with this or a lower offset is still `.cleaned`, and replaces
    the segments whose first offsets it covers.
    """
    cleaned = {name for name in names if name.endswith(CLEANED_SUFFIX)}
    lowest = min((int(name[:_BASE_DIGITS]) for name in cleaned), default=None)
    swaps = set()
    for name in names:
        if name.endswith(SWAP_SUFFIX):
            if lowest is not None and int(name[:_BASE_DIGITS]) >= lowest:
                remove_if_there(files, os.path.join(directory, name))
            else:
                swaps.add(name)
    if cleaned:
        sync_path(files, directory)  # without the cleaned files, those swaps would count
    for name in cleaned:
        remove_if_there(files, os.path.join(directory, name))
    for name in sorted(swaps):
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            first = int(name[:_BASE_DIGITS])
            end = _next_offset(files, os.path.join(directory, name), first)
            for other in names - swaps - cleaned:
                if first <= int(other[:_BASE_DIGITS]) < end and other.endswith(FILE_SUFFIXES):
                    remove_if_there(files, os.path.join(directory, other))
    # The logs first: whatever is still `.swap` then belongs to a log that has its name.
    for name in sorted(swaps, key=lambda name: (not name.endswith(LOG_SUFFIX + SWAP_SUFFIX), name)):
        target = os.path.join(directory, name.removesuffix(SWAP_SUFFIX))
        files.rename(os.path.join(directory, name), target)


def _next_offset(files: Files, path: str, base_offset: int) -> int:
    """The offset behind the last batch of a log file; at least one is covered, that of the file's name."""
    file = FileHandle(files, files.open(path, os.O_RDONLY | os.O_CLOEXEC))
    offset = base_offset + 1
    for _, header in iter_batch_headers(file, 0, files.fstat(file.fd).st_size):
        offset = header.next_offset
    return offset
