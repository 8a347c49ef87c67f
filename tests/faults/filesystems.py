"""Small file systems of our own, which can be filled, lose their power, or fail, without harm to anybody.

They are mounted for real, so this needs root. `SmallDisk` is a tmpfs that is soon full. `PowerFailingDisk` is
ext4 in an image: `cut_power` makes every later operation fail with EIO and throws away what was not synced,
as a machine that loses its power does. `FailingDisk` is ext4 in an image that has no room to grow: its file
system believes in free space, writes succeed, and then the fsync fails once.
"""

import fcntl
import os
import struct
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

_EXT4_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN: _IOR('X', 125, __u32)
_NO_LOG_FLUSH = struct.pack("I", 2)  # what is not in the journal on disk is lost
_PAGE_BYTES = 4096


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.fail(f"{command[0]} is missing: install mount and e2fsprogs to run the tests of failing disks")
    if done.returncode:
        pytest.fail(
            f"cannot {' '.join(command)}: {done.stderr.strip()}; tests of full and failing disks mount small "
            "file systems of their own: run them as root, in a container with --privileged"
        )


class _Mounted:
    """A file system that is mounted at `path` for the length of a `with` block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mounted = False

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True, exist_ok=True)
        self.mount()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._mounted:
            # Lazily: a broker that outlives a failed test must not keep the test from ending.
            subprocess.run(["umount", "-l", str(self.path)], check=False)

    def mount(self) -> None:
        _run(*self.mount_command(), str(self.path))
        self._mounted = True

    def unmount(self) -> None:
        _run("umount", str(self.path))
        self._mounted = False

    def mount_command(self) -> list[str]:
        raise NotImplementedError


class SmallDisk(_Mounted):
    """A tmpfs of `size` bytes."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(path)
        self._size = size

    def mount_command(self) -> list[str]:
        return ["mount", "-t", "tmpfs", "-o", f"size={self._size}", "mainstem-test"]

    @property
    def free_bytes(self) -> int:
        state = os.statvfs(self.path)
        return state.f_bavail * state.f_frsize

    def fill(self, name: str = "ballast", *, leave: int = 0) -> Path:
        """Write a file that leaves no more than so many bytes."""
        ballast = self.path / name
        with ballast.open("ab", buffering=0) as file:
            while self.free_bytes > leave:
                try:
                    file.write(bytes(min(_PAGE_BYTES, self.free_bytes - leave)))
                except OSError:
                    break
        return ballast


class PowerFailingDisk(_Mounted):
    """ext4 with its journal, in an image."""

    def __init__(self, path: Path, image: Path, size: int = 48 * 1024 * 1024) -> None:
        super().__init__(path)
        self._image = image
        with image.open("wb") as file:
            file.truncate(size)
        _run("mkfs.ext4", "-q", "-F", *self.mkfs_options(), str(image))

    def mkfs_options(self) -> list[str]:
        return []

    def mount_command(self) -> list[str]:
        return ["mount", "-o", "loop", str(self._image)]

    def cut_power(self) -> None:
        """From now on nothing can be written or read; what was not synced will not be there again.

        Nobody may be inside an fsync: the kernel reports success to one that this call overtakes.
        """
        fd = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, _EXT4_SHUTDOWN, _NO_LOG_FLUSH)
        finally:
            os.close(fd)

    def come_back(self) -> None:
        """The machine starts again. Nobody may have files open any more."""
        self.unmount()
        self.mount()


class FailingDisk(PowerFailingDisk):
    """ext4 without a journal on a tmpfs that can be filled behind its back."""

    def __init__(self, path: Path, below: SmallDisk) -> None:
        super().__init__(path, below.path / "image", 64 * 1024 * 1024)

    def mkfs_options(self) -> list[str]:
        return ["-O", "^has_journal", "-E", "nodiscard"]
