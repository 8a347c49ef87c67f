"""A disk in memory that can lose its power: what was not synced by then is gone, or half gone.

What a file holds survives once the file is synced; which name leads to it, once the directory is. Of what was
not synced, a random part survives: writes and names are kept or lost one by one, whatever their order was.
"""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from mainstem.storage.files.files import AnyPath

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

# (position, data): a write; (size, None): a change of the size.
Change = tuple[int, bytes | None]


class PowerLossError(BaseException):
    """The machine is off; nothing that runs on it goes on."""


class _File:
    def __init__(self, inode: int) -> None:
        self.inode = inode
        self.data = bytearray()
        self.durable = b""
        self.unsynced: list[Change] = []
        self.lock_holder = -1

    def change(self, change: Change) -> None:
        _apply(self.data, change)
        self.unsynced.append(change)

    def sync(self) -> None:
        self.durable = bytes(self.data)
        self.unsynced.clear()

    def lose_power(self, random: Random) -> None:
        data = bytearray(self.durable)
        for change in self.unsynced:
            if random.random() < 0.5:
                _apply(data, change)
        self.data = data
        self.sync()


class _Folder:
    def __init__(self, inode: int) -> None:
        self.inode = inode
        self.entries: dict[str, _File | _Folder] = {}
        self.durable: dict[str, _File | _Folder] = {}

    def sync(self) -> None:
        self.durable = dict(self.entries)

    def lose_power(self, random: Random) -> None:
        for name in sorted(self.entries.keys() | self.durable.keys()):
            old, new = self.durable.get(name), self.entries.get(name)
            kept = new if old is new or random.random() < 0.5 else old
            if kept is None:
                self.entries.pop(name, None)
            else:
                self.entries[name] = kept
        self.sync()
        for node in self.entries.values():
            node.lose_power(random)


def _apply(data: bytearray, change: Change) -> None:
    position, written = change
    if written is None:
        del data[position:]
    data.extend(bytes(max(0, position - len(data))))
    if written is not None:
        data[position : position + len(written)] = written


def _error(code: int, path: object) -> OSError:
    return OSError(code, os.strerror(code), str(path))


class MemoryFiles:
    """See `Files`. `before` is called with the name of every call that changes something, before it does."""

    def __init__(self) -> None:
        self._numbers = count(3)
        self._root = _Folder(next(self._numbers))
        self._open: dict[int, tuple[_File | _Folder, int]] = {}
        self.before: Callable[[str], None] = lambda _: None

    def lose_power(self, random: Random) -> None:
        """Every file is closed, and what was not synced is kept or lost by chance."""
        self._open.clear()
        self._root.lose_power(random)

    # ---- names

    def _find(self, path: AnyPath) -> "_File | _Folder":
        node: _File | _Folder = self._root
        for name in _parts(path):
            if not isinstance(node, _Folder):
                raise _error(errno.ENOTDIR, path)
            if name not in node.entries:
                raise _error(errno.ENOENT, path)
            node = node.entries[name]
        return node

    def _folder(self, path: AnyPath) -> _Folder:
        node = self._find(path)
        if not isinstance(node, _Folder):
            raise _error(errno.ENOTDIR, path)
        return node

    def _place(self, path: AnyPath) -> tuple[_Folder, str]:
        *above, name = _parts(path)
        return self._folder("/".join(above)), name

    def open(self, path: AnyPath, flags: int, mode: int = 0o777) -> int:
        node: _File | _Folder
        if not self.exists(path) and flags & os.O_CREAT:
            folder, name = self._place(path)
            self.before("create")
            node = folder.entries[name] = _File(next(self._numbers))
        else:
            node = self._find(path)
        if isinstance(node, _File) and flags & os.O_TRUNC:
            self.before("truncate")
            node.change((0, None))
        fd = next(self._numbers)
        self._open[fd] = node, 0
        return fd

    def exists(self, path: AnyPath) -> bool:
        try:
            self._find(path)
        except OSError:
            return False
        return True

    def stat(self, path: AnyPath) -> os.stat_result:
        return _stat(self._find(path))

    def rename(self, source: AnyPath, target: AnyPath) -> None:
        folder, name = self._place(source)
        if name not in folder.entries:
            raise _error(errno.ENOENT, source)
        self.before("rename")
        target_folder, target_name = self._place(target)
        target_folder.entries[target_name] = folder.entries.pop(name)

    replace = rename

    def unlink(self, path: AnyPath) -> None:
        folder, name = self._place(path)
        node = folder.entries.get(name)
        if not isinstance(node, _File):
            raise _error(errno.ENOENT if node is None else errno.EISDIR, path)
        self.before("unlink")
        del folder.entries[name]

    def mkdir(self, path: AnyPath) -> None:
        folder, name = self._place(path)
        if name in folder.entries:
            raise _error(errno.EEXIST, path)
        self.before("mkdir")
        folder.entries[name] = _Folder(next(self._numbers))

    def make_folders(self, path: AnyPath) -> None:
        parts = _parts(path)
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            if not self.exists(above):
                self.mkdir(above)

    def listdir(self, path: AnyPath) -> list[str]:
        return list(self._folder(path).entries)

    def folders(self, path: AnyPath) -> list[str]:
        return [name for name, node in self._folder(path).entries.items() if isinstance(node, _Folder)]

    def remove_folder(self, path: AnyPath) -> None:
        folder, name = self._place(path)
        self._folder(path)
        self.before("remove_folder")
        del folder.entries[name]

    # ---- content

    def _file(self, fd: int) -> _File:
        node = self._node(fd)
        if not isinstance(node, _File):
            raise _error(errno.EISDIR, fd)
        return node

    def _node(self, fd: int) -> "_File | _Folder":
        if fd not in self._open:
            raise _error(errno.EBADF, fd)
        return self._open[fd][0]

    def close(self, fd: int) -> None:
        # A handle that was open when the power went is let go of some time later.
        node, _ = self._open.pop(fd, (None, 0))
        if isinstance(node, _File) and node.lock_holder == fd:
            node.lock_holder = -1

    def pread(self, fd: int, count: int, position: int) -> bytes:
        return bytes(self._file(fd).data[position : position + count])

    def preadv(self, fd: int, buffers: "Sequence[WriteableBuffer]", position: int) -> int:
        start = position
        for buffer in buffers:
            view = memoryview(buffer).cast("B")
            data = self.pread(fd, len(view), position)
            view[: len(data)] = data
            position += len(data)
        return position - start

    def pwrite(self, fd: int, data: "ReadableBuffer", position: int) -> int:
        written = bytes(data)
        self.before("pwrite")
        self._file(fd).change((position, written))
        return len(written)

    def write(self, fd: int, data: "ReadableBuffer") -> int:
        node, position = self._open[fd]
        written = self.pwrite(fd, data, position)
        self._open[fd] = node, position + written
        return written

    def ftruncate(self, fd: int, size: int) -> None:
        self.before("ftruncate")
        self._file(fd).change((size, None))

    def fsync(self, fd: int) -> None:
        self.before("fsync")
        self._node(fd).sync()

    def fstat(self, fd: int) -> os.stat_result:
        return _stat(self._node(fd))

    def posix_fallocate(self, fd: int, position: int, count: int) -> None:
        if position + count > len(self._file(fd).data):
            self.ftruncate(fd, position + count)

    def posix_fadvise(self, fd: int, position: int, count: int, advice: int) -> None:
        self._file(fd)

    def set_modified_ns(self, fd: int, time_ns: int) -> None:
        self._file(fd)

    def reserve(self, fd: int, position: int) -> int:
        self._file(fd)
        return position + (1 << 20)

    def lock(self, fd: int) -> None:
        file = self._file(fd)
        if file.lock_holder in self._open:
            raise _error(errno.EWOULDBLOCK, fd)
        file.lock_holder = fd


def _parts(path: AnyPath) -> list[str]:
    return [part for part in os.fspath(path).split("/") if part]


def _stat(node: "_File | _Folder") -> os.stat_result:
    is_folder = isinstance(node, _Folder)
    fields: list[Any] = [stat.S_IFDIR if is_folder else stat.S_IFREG, node.inode, 1, 1, 0, 0]
    return os.stat_result((*fields, 0 if isinstance(node, _Folder) else len(node.data), 0, 0, 0))
