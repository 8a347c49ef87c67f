"""The cache of compiled kernels: private, found again, safe for many processes that start at once."""

import os
import runpy
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mainstem.records.columnar.compiling import kernel
from mainstem.records.columnar.kernel_cache import cache_folder
from mainstem.records.columnar.layout import INT64, INT64S, OUT_INT64S, VOID, Int64s
from mainstem.records.columnar.scan import count_batches

_TINY = """
from mainstem.records.columnar.compiling import inlined, kernel
from mainstem.records.columnar.layout import INT64

@inlined
def twice(number):
    return number * 2

@kernel(INT64(INT64))
def double(number):
    return twice(number)
"""
_DOUBLE = """
import runpy, sys
from mainstem.records.columnar.kernel_cache import cache_folder

double = runpy.run_path(sys.argv[1])["double"]
assert double(21) == 42
print(cache_folder(), int(double.was_compiled_here), int("numba" in sys.modules))
"""
_DECODE = """
import sys
from mainstem.records.columnar import decode
from mainstem.records.columnar.kernel_cache import cache_folder
from mainstem.records.columnar.walk import walk
from mainstem.records.record import Record, build_batch

found = decode(build_batch([Record(0, 1, None, b"value")]), 0, 100)
assert found.value.to_pylist() == [b"value"]
print(cache_folder(), int(walk.was_compiled_here), int("numba" in sys.modules))
"""


def _start(program: str, *arguments: str, home: Path | None = None) -> subprocess.Popen[str]:
    """With a home of its own, the cache is empty at first."""
    left_out = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME") if home is not None else ()
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env=kept if home is None else kept | {"HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> tuple[Path, int, int]:
    """The cache folder, whether the kernel was compiled, and whether numba was loaded."""
    out, error = process.communicate(timeout=290)
    assert process.returncode == 0, error
    folder, compiled, loaded = out.split()
    return Path(folder), int(compiled), int(loaded)


def _start_tiny(folder: Path) -> subprocess.Popen[str]:
    source = folder / "tiny.py"
    if not source.exists():
        source.write_text(_TINY)
    return _start(_DOUBLE, str(source), home=folder)


@pytest.mark.timeout(400)
def test_one_of_many_processes_compiles_and_the_others_load(tmp_path: Path) -> None:
    together = [_finish(process) for process in [_start_tiny(tmp_path) for _ in range(3)]]
    later = _finish(_start_tiny(tmp_path))
    assert sorted(compiled for _, compiled, _ in together) == [0, 0, 1]
    assert later[1:] == (0, 0)
    (folder,) = {found[0] for found in (*together, later)}
    assert folder.is_relative_to(tmp_path / ".cache" / "mainstem")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.timeout(400)
def test_records_are_decoded_without_numba_once_the_kernels_are_compiled() -> None:
    _finish(_start(_DECODE))
    assert _finish(_start(_DECODE))[1:] == (0, 0)


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_one_of_many_processes_compiles_all_kernels(tmp_path: Path) -> None:
    found = [_finish(process) for process in [_start(_DECODE, home=tmp_path) for _ in range(3)]]
    assert sorted(compiled for _, compiled, _ in found) == [0, 0, 1]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a folder for temporary files of this test's own."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "home"


def _found_folder() -> Path | None:
    return cache_folder.__wrapped__()


def test_the_users_choices_come_first(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def parent() -> Path:
        folder = _found_folder()
        assert folder is not None
        return folder.parent

    assert parent() == home / ".cache" / "mainstem"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert parent() == tmp_path / "xdg" / "mainstem"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert parent() == tmp_path / "chosen" / "mainstem"


def test_without_a_home_that_can_be_written_the_cache_is_temporary(home: Path) -> None:
    home.write_text("a file, in which there are no folders")
    folder = _found_folder()
    assert folder is not None
    assert folder.parent == home.parent / "temporary" / f"mainstem-{os.geteuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("trap", ["writable", "link"])
def test_a_folder_that_others_can_write_to_is_not_used(home: Path, trap: str) -> None:
    (home / ".cache").mkdir(parents=True)
    ours = home / ".cache" / "mainstem"
    if trap == "writable":
        ours.mkdir()
        ours.chmod(0o777)
    else:
        (home / "elsewhere").mkdir(mode=0o700)
        ours.symlink_to(home / "elsewhere")
    folder = _found_folder()
    assert folder is not None
    assert not folder.is_relative_to(ours)


def _doubled(source: Path) -> tuple[int, bool]:
    """What a kernel of a file computes, and whether it was compiled for that."""
    names = runpy.run_path(str(source))
    return names["double"](21), names["double"].was_compiled_here


def test_a_damaged_cache_is_made_anew(home: Path) -> None:
    cache_folder.cache_clear()
    try:
        source = home.parent / "tiny.py"
        source.write_text(_TINY)
        assert _doubled(source) == (42, True)
        assert _doubled(source) == (42, False)
        (cached,) = home.rglob("*.kernel")
        whole = cached.read_bytes()
        for damaged in (whole[:-100], whole[:10], b"", whole[:200] + b"\xff" + whole[201:]):
            cached.write_bytes(damaged)
            assert _doubled(source) == (42, True)
            assert _doubled(source) == (42, False)
    finally:
        cache_folder.cache_clear()


def test_with_no_folder_at_all_kernels_are_compiled_in_memory(home: Path) -> None:
    home.write_text("")
    (home.parent / "temporary").write_text("")
    assert _found_folder() is None
    cache_folder.cache_clear()
    try:

        @kernel(INT64(INT64))
        def double(number: int) -> int:
            return number * 2

        assert double(21) == 42
    finally:
        cache_folder.cache_clear()


def test_an_array_that_a_kernel_cannot_take_is_refused() -> None:
    octets, facts = np.zeros(100, np.uint8), np.zeros(3, np.int64)
    read_only = np.frombuffer(bytes(24), np.int64)
    pairs: list[tuple[Any, Any]] = [
        (octets.view(np.int8), facts),
        (octets[::2], facts),
        (octets.reshape(10, 10), facts),
        (octets, facts.astype(np.int32)),
        (octets, read_only),
    ]
    for data, wanted in pairs:
        with pytest.raises(TypeError):
            count_batches(data, 0, wanted)
    with pytest.raises(ValueError, match="zip"):
        count_batches(octets, 0)  # type: ignore[call-arg]


@kernel(VOID(INT64S, INT64, OUT_INT64S))
def _divide(numbers: Int64s, divisor: int, out: Int64s) -> None:
    for index in range(numbers.size):
        out[index] = numbers[index] // divisor


def test_what_goes_wrong_in_a_kernel_is_told() -> None:
    out = np.zeros(2, np.int64)
    _divide(np.array([7, 9]), 2, out)
    assert out.tolist() == [3, 4]
    with pytest.raises(ArithmeticError, match="_divide"):
        _divide(np.array([7, 9]), 0, out)
