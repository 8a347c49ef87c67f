"""The disk of this machine: the calls of `os`, and what stands behind those that it does not have."""

import ctypes
import errno
import fcntl
import os
import shutil

from mainstem.storage.files.files import AnyPath

_PIECE_BYTES_MAX = 16 << 20
_KEEP_SIZE = 1
_NEVER = 1 << 63

_fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
if _fallocate is not None:
    _fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


class RealFiles:
    """See `Files`. The calls are functions written in C, found once: nothing stands between."""

    __slots__ = ()

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    pread = staticmethod(os.pread)
    preadv = staticmethod(os.preadv)
    pwrite = staticmethod(os.pwrite)
    write = staticmethod(os.write)
    ftruncate = staticmethod(os.ftruncate)
    fsync = staticmethod(os.fsync)
    fstat = staticmethod(os.fstat)
    posix_fallocate = staticmethod(os.posix_fallocate)
    posix_fadvise = staticmethod(os.posix_fadvise)

    stat = staticmethod(os.stat)
    exists = staticmethod(os.path.exists)
    rename = staticmethod(os.rename)
    replace = staticmethod(os.replace)
    unlink = staticmethod(os.unlink)
    mkdir = staticmethod(os.mkdir)
    listdir = staticmethod(os.listdir)

    def make_folders(self, path: AnyPath) -> None:
        os.makedirs(path, exist_ok=True)

    def folders(self, path: AnyPath) -> list[str]:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]

    def remove_folder(self, path: AnyPath) -> None:
        shutil.rmtree(path)

    def set_modified_ns(self, fd: int, time_ns: int) -> None:
        os.utime(fd, ns=(time_ns, time_ns))

    def lock(self, fd: int) -> None:
        # One kind of lock keeps out a Kafka broker, the other a second node in this process.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def reserve(self, fd: int, position: int) -> int:
        """As much again as there is, up to 16 MiB. A write to blocks that are already reserved costs a third
        less CPU than one for which every 4 KiB is looked up and accounted for. A reader, a restart and
        Kafka's tools see nothing of it; cutting the file gives back what was not used.

        A refusal is not an error: the write itself will tell whether there is room.
        """
        if _fallocate is None:
            return _NEVER
        count = min(position, _PIECE_BYTES_MAX)
        while _fallocate(fd, _KEEP_SIZE, position, count) != 0:
            problem = ctypes.get_errno()
            if problem == errno.EINTR:
                continue
            # A file system that cannot do it at all is not asked again.
            return _NEVER if problem in (errno.ENOSYS, errno.EOPNOTSUPP) else position + count
        return position + count
