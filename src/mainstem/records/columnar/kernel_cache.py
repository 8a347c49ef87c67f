"""Where the machine code of kernels is kept for the next process.

It is in a folder of the user's own; one process compiles a kernel while others wait for it. A folder that
somebody else could have written to is never used, because what is loaded from it runs; and neither is a file
that is not whole.
"""

import contextlib
import fcntl
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import llvmlite.binding

from mainstem.records.columnar.machine_code import MachineCode

# Longer than any compilation: whoever holds the lock then is stuck, and compiling twice is safe.
_LOCK_WAIT_S = 60.0
_LOCK_POLL_S = 0.02
_DIGEST_SIZE = hashlib.sha256().digest_size
# What of numba's settings the machine code depends on.
NUMBA_SETTINGS = (
    "NUMBA_CPU_NAME",
    "NUMBA_CPU_FEATURES",
    "NUMBA_OPT",
    "NUMBA_BOUNDSCHECK",
    "NUMBA_DEBUGINFO",
)


def find_or_make(name: str, compile_it: Callable[[], tuple[str, bytes]]) -> tuple[MachineCode, bool]:
    """The machine code of this kernel, and whether it was compiled now."""
    folder = cache_folder()
    if folder is None:
        return MachineCode(*compile_it()), True
    path = folder / f"{name}.kernel"
    if found := _read(path):
        return MachineCode(*found), False
    with _locked(folder / "lock"):
        if found := _read(path):
            return MachineCode(*found), False
        made = compile_it()
        with contextlib.suppress(OSError):  # a full disk is no reason to stop
            _write(path, *made)
    return MachineCode(*made), True


def _read(path: Path) -> tuple[str, bytes] | None:
    """The symbol and the object file; None unless they are there, ours and whole."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return None
        content = file.read()
    digest, rest = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
    if hashlib.sha256(rest).digest() != digest:
        return None
    symbol, _, object_file = rest.partition(b"\n")
    return symbol.decode(), object_file


def _write(path: Path, symbol: str, object_file: bytes) -> None:
    """All of it or nothing, whoever writes or reads the same at the same time."""
    content = symbol.encode() + b"\n" + object_file
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@cache
def cache_folder() -> Path | None:
    """The folder for this machine's processor, this LLVM and these very sources; None if there can be none.

    Because its name stands for all that the machine code depends on, processes of different versions or
    different machines with a shared home never write to the same files.
    """
    for parent in _cache_parents():
        try:
            return _private_folder(parent / _fingerprint())
        except OSError:
            continue
    return None


def _cache_parents() -> Iterator[Path]:
    """Where the cache may be, the best place first."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / "mainstem"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(home):
        yield Path(home) / "mainstem"
    yield Path(tempfile.gettempdir()) / f"mainstem-{os.geteuid()}"


def _private_folder(folder: Path) -> Path:
    """Make `folder` inside a folder of ours; OSError unless nobody else can write to either."""
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for level in (folder.parent, folder):
        level.mkdir(mode=0o700, exist_ok=True)
        status = level.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError(f"{level} can be written by others")
    return folder


@cache
def _fingerprint() -> str:
    digest = hashlib.sha256()
    for fact in (
        llvmlite.binding.llvm_version_info,
        sys.implementation.cache_tag,
        llvmlite.binding.get_process_triple(),
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
        [os.environ.get(name) for name in NUMBA_SETTINGS],
    ):
        digest.update(f"{fact}\n".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock, or go on without it: it saves work, and files are replaced as a whole anyway."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        _wait_for_lock(handle)
        yield
    finally:
        os.close(handle)


def _wait_for_lock(handle: int) -> None:
    deadline = time.monotonic() + _LOCK_WAIT_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_POLL_S)
        except OSError:
            return
        else:
            return
