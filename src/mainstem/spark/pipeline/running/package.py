"""Packs the Python packages that Spark's workers need into one archive, for a cluster that has none of them.

The archive holds what is importable here, ours included, but neither Python itself nor Spark: those are on
every worker. It is unpacked beside each executor and put on its path. No Spark here.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = "mainstem-environment"
# What decoding and writing in the workers needs, with what these need.
_ROOTS = (
    "confluent-kafka",
    "cramjam",
    "crc32c",
    "fastavro",
    "msgspec",
    "numba",
    "pandas",
    "protobuf",
    "pyarrow",
)
_OURS = ("mainstem", "pyspark_mainstem")
_LEFT_OUT = {"pyspark", "py4j"}
_SKIPPED_FOLDERS = {"__pycache__", "tests", "test"}


def build_archive(folder: Path) -> Path:
    """Write the archive below `folder`, or find it there if nothing has changed since; gives its path."""
    files = list(_files())
    digest = hashlib.sha256()
    for name, path in files:
        stat = path.stat()
        digest.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    archive = folder / f"{FOLDER}-{digest.hexdigest()[:12]}.tar.gz"
    if archive.exists():
        return archive
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_suffix(".unfinished")
    with tarfile.open(unfinished, "w:gz", compresslevel=1) as target:
        for name, path in files:
            target.add(path, name, recursive=False)
    unfinished.rename(archive)
    return archive


def archive_settings(archive: Path) -> dict[str, str]:
    """Spark's settings that unpack the archive beside each executor, where Python finds it."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return {
        "spark.archives": f"{archive}#{FOLDER}",
        "spark.executorEnv.PYTHONPATH": f"./{FOLDER}",
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": sys.executable,
    }


def _files() -> Iterator[tuple[str, Path]]:
    for name in _OURS:
        module = importlib.import_module(name)
        root = Path(module.__file__ or "").parent
        for path in sorted(root.rglob("*")):
            if path.is_file() and not _SKIPPED_FOLDERS & set(path.parts) and path.suffix != ".pyc":
                yield str(Path(name) / path.relative_to(root)), path
    for distribution in _needed():
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if ".." in file.parts or _SKIPPED_FOLDERS & set(file.parts) or not path.is_file():
                continue
            yield str(file), path


def _needed() -> list[importlib.metadata.Distribution]:
    """The roots and all that they require, as installed here."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(_ROOTS)
    while waiting:
        name = waiting.pop()
        key = name.lower().replace("_", "-")
        if key in found or key in _LEFT_OUT:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[key] = distribution
        for requirement in distribution.requires or ():
            if "extra ==" not in requirement:
                waiting.append(_bare_name(requirement))
    return [found[key] for key in sorted(found)]


def _bare_name(requirement: str) -> str:
    end = next((at for at, mark in enumerate(requirement) if mark in " ;<>=!~[("), len(requirement))
    return requirement[:end]
