"""Who reaches for the outside world by himself: the clock, randomness, threads, child processes and files.

Everything else is handed what it needs, so that the same code runs on a simulated disk and in simulated time.
The lists say who may, and why; a name that is on one without need fails as well.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "mainstem"

# Modules of Python, by what they reach for.
OUTSIDE = {
    "time": "clock",
    "random": "randomness",
    "secrets": "randomness",
    "threading": "threads",
    "concurrent": "threads",
    "subprocess": "child processes",
    "multiprocessing": "child processes",
    "tempfile": "files",
    "shutil": "files",
    "fcntl": "files",
}
# What makes the real disk, and the calls of a path that reach for it; those of `Files` have the same names.
REAL_FILES = "RealFiles"
PATH_CALLS = {
    "exists", "isdir", "isfile", "getsize", "realpath", "is_dir", "is_file", "iterdir", "glob", "rglob",
    "mkdir", "unlink", "rmdir", "touch", "stat", "read_text", "read_bytes", "write_text", "write_bytes",
}  # fmt: skip
# What is offered by `os` and reaches for nothing.
HARMLESS = {"path", "strerror", "fspath", "environ", "PathLike", "stat_result", "DirEntry"}

ALLOWED = {
    "storage/environment.py": {
        "clock": "the default of what is handed in",
        "randomness": "likewise",
        "files": "likewise",
    },
    "storage/directories/log_manager.py": {
        "randomness": "the type of what is handed in",
        "threads": "loads and syncs many logs at once",
    },
    "storage/files/real_files.py": {"files": "what is handed in"},
    "storage/files/file_range.py": {"threads": "a lock"},
    "storage/producers/index_repair.py": {"files": "the program of a child process"},
    "storage/cleaner/checkpoint.py": {"threads": "a lock"},
    "storage/cleaner/cleaning.py": {"clock": "a default"},
    "storage/cleaner/keys.py": {"randomness": "of the child process"},
    "storage/cleaner/throttle.py": {"clock": "a default"},
    "storage/cleaner/worker.py": {"child processes": "the program of one", "files": "likewise"},
    "records/columnar/ship.py": {"files": "a program that makes the kernels of the package"},
    "records/columnar/shipped.py": {"files": "reads the kernels of the package"},
    "records/columnar/compiling.py": {"threads": "a lock"},
    "records/columnar/encode.py": {"clock": "stamps records that have no time"},
    "records/columnar/kernel_cache.py": {"files": "the cache of machine code", "clock": "waits for a lock"},
}


def reached(text: str) -> Iterator[str]:
    """What a module reaches for."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (OUTSIDE[root] for name in node.names if (root := name.name.split(".")[0]) in OUTSIDE)
        elif isinstance(node, ast.ImportFrom) and node.module:
            root = node.module.split(".")[0]
            if root in OUTSIDE:
                yield OUTSIDE[root]
        elif isinstance(node, ast.Call) and _reaches_for_files(node.func):
            yield "files"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            yield from _reached_by_os(node.attr)


def _reaches_for_files(called: ast.expr) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr in PATH_CALLS and not ast.unparse(called.value).endswith("files")
    return isinstance(called, ast.Name) and called.id in ("open", REAL_FILES)


def _reached_by_os(name: str) -> Iterator[str]:
    if name in ("urandom", "getrandom"):
        yield "randomness"
    elif name in ("fork", "kill", "nice", "_exit", "getppid", "sched_yield"):
        yield "child processes"
    elif name not in HARMLESS and not name.isupper():
        yield "files"


@pytest.mark.parametrize("room", ["storage", "records"])
def test_only_those_who_may_reach_outside(room: str) -> None:
    found = {
        str(path.relative_to(SOURCES)): kinds
        for path in (SOURCES / room).rglob("*.py")
        if (kinds := set(reached(path.read_text())))
    }
    assert found == {path: set(why) for path, why in ALLOWED.items() if path.startswith(f"{room}/")}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("import time", "clock"),
        ("from time import monotonic", "clock"),
        ("from concurrent.futures import Future", "threads"),
        ("import os\nos.fsync(1)", "files"),
        ("open('x')", "files"),
        ("import os\nos.path.exists('x')", "files"),
        ("path.read_text()", "files"),
        ("Log(RealFiles())", "files"),
        ("import os\nos.urandom(1)", "randomness"),
        ("import subprocess", "child processes"),
    ],
)
def test_a_planted_reach_is_found(text: str, kind: str) -> None:
    assert set(reached(text)) == {kind}
    assert list(reached("import os\nos.path.join('a', os.fspath('b'))\nself._files.stat(os.O_RDONLY)")) == []
