"""What the storage asks of a disk. Everything that touches one is handed these calls and makes no others, so
that the same code runs on a disk that fails, or loses power, exactly where a test or a simulation says.

The calls are those of `os`, by name, arguments and errors: the real ones cost nothing more. A file is known
by a descriptor; only the one who made it knows what that number stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, stat_result
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

AnyPath = str | PathLike[str]


class Files(Protocol):
    """A disk. What is written survives a power failure once `fsync` has returned; a name, once its directory
    is synced.
    """

    def open(self, path: AnyPath, flags: int, mode: int = ..., /) -> int: ...
    def close(self, fd: int, /) -> None: ...
    def pread(self, fd: int, count: int, position: int, /) -> bytes: ...
    def preadv(self, fd: int, buffers: Sequence[WriteableBuffer], position: int, /) -> int: ...
    def pwrite(self, fd: int, data: ReadableBuffer, position: int, /) -> int: ...
    def write(self, fd: int, data: ReadableBuffer, /) -> int: ...
    def ftruncate(self, fd: int, size: int, /) -> None: ...
    def fsync(self, fd: int, /) -> None: ...
    def fstat(self, fd: int, /) -> stat_result: ...
    def posix_fallocate(self, fd: int, position: int, count: int, /) -> None: ...
    def posix_fadvise(self, fd: int, position: int, count: int, advice: int, /) -> None: ...

    def stat(self, path: AnyPath, /) -> stat_result: ...
    def exists(self, path: AnyPath, /) -> bool: ...
    def rename(self, source: AnyPath, target: AnyPath, /) -> None: ...
    def replace(self, source: AnyPath, target: AnyPath, /) -> None: ...
    def unlink(self, path: AnyPath, /) -> None: ...
    def mkdir(self, path: AnyPath, /) -> None: ...
    def listdir(self, path: AnyPath, /) -> list[str]: ...

    def make_folders(self, path: AnyPath, /) -> None:
        """Make a folder and those above it, as far as they are not there."""

    def folders(self, path: AnyPath, /) -> list[str]:
        """The names of the folders in a folder."""

    def remove_folder(self, path: AnyPath, /) -> None:
        """Remove a folder with all that is in it."""

    def set_modified_ns(self, fd: int, time_ns: int, /) -> None:
        """Have the file look as if it was last written then."""

    def reserve(self, fd: int, position: int, /) -> int:
        """Reserve blocks behind `position` without a change of the file's size, as far as this is possible;
        returns where to ask next.
        """

    def lock(self, fd: int, /) -> None:
        """Keep everybody else out who locks the same file, until it is closed; OSError when somebody has."""
