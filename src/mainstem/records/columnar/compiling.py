"""How this package's kernels are compiled, and where the machine code is kept for the next process.

Spark starts many Python workers at once, and each would spend seconds of compiling. So the code is cached in
a folder of the user's own, one process compiles a kernel while others wait for it, and a folder that somebody
else could have written to is never used: what is loaded from it runs.
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
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba

# Its names are made at run time, so mypy knows none of them.
_config: Any = numba.config

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Longer than any compilation: whoever holds the lock then is stuck, and compiling twice is safe.
_LOCK_WAIT_S = 60.0
_LOCK_POLL_S = 0.02


def kernel(signature: Any) -> Callable[[_Function], _Function]:
    """Compile a function for the one given signature, from the cache where that is possible."""

    def decorate(function: _Function) -> _Function:
        folder = cache_folder()
        if folder is None:
            return _compile(function, signature, cached=False)
        with _cached_in(folder, function.__qualname__):
            for _ in range(2):
                try:
                    return _compile(function, signature, cached=True)
                except Exception:
                    # A damaged cache is made anew.
                    _forget(folder, function.__qualname__)
        # No source file to watch, a full disk: no reason to stop. A mistake in the kernel is raised now.
        return _compile(function, signature, cached=False)

    return decorate


def inlined(function: _Function) -> _Function:
    """Mark a helper whose code is put wherever a kernel calls it."""
    return cast(_Function, numba.njit(nogil=True, forceinline=True)(function))


def called(function: _Function) -> _Function:
    """Mark a helper that kernels call: one that is long, or needed seldom."""
    return cast(_Function, numba.njit(nogil=True)(function))


def _compile(function: _Function, signature: Any, *, cached: bool) -> _Function:
    return cast(_Function, numba.njit(signature, nogil=True, cache=cached)(function))


@cache
def cache_folder() -> Path | None:
    """The folder for this machine's processor, this numba and these very sources; None if there can be none.

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
    with tempfile.TemporaryFile(dir=folder):
        return folder


@cache
def _fingerprint() -> str:
    digest = hashlib.sha256()
    for fact in (
        numba.__version__,
        llvmlite.binding.llvm_version_info,
        sys.implementation.cache_tag,
        llvmlite.binding.get_process_triple(),
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
        (_config.CPU_NAME, _config.CPU_FEATURES, _config.OPT, _config.BOUNDSCHECK, _config.DEBUGINFO_DEFAULT),
    ):
        digest.update(f"{fact}\n".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _cached_in(folder: Path, name: str) -> Iterator[None]:
    """While this lasts numba uses `folder`, and nobody else compiles what is not compiled yet."""
    # Only for the moment of the decoration: another package's kernels keep the folder that they had.
    before = _config.CACHE_DIR
    compiled = folder / f"{name}.compiled"
    with contextlib.nullcontext() if compiled.exists() else _locked(folder / "lock"):
        _config.CACHE_DIR = str(folder)
        try:
            yield
            with contextlib.suppress(OSError):
                compiled.touch()
        finally:
            _config.CACHE_DIR = before


def _forget(folder: Path, name: str) -> None:
    for index in folder.rglob(f"*{name}-*.nbi"):
        with contextlib.suppress(OSError):
            index.unlink()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock, or go on without it: it saves work, and numba replaces files atomically anyway."""
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
