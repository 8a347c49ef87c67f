"""What `mainstem demo` needs before it starts anything: Spark's Python packages, and a Java for Spark."""

from __future__ import annotations

import importlib.util
import re
import subprocess

from mainstem.cli.errors import CommandError
from mainstem.cli.pipeline.files import missing_package

JAVA_MIN = 17
_PACKAGES = ("pyspark", "pyarrow", "numba", "yaml")
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_ASK_TIMEOUT_S = 60
_HINT = (
    f"install a Java runtime of version {JAVA_MIN} or later (Debian, Ubuntu: apt install "
    "default-jre-headless), or set JAVA_HOME to one"
)


def check_requirements() -> None:
    """CommandError with what to install."""
    for name in _PACKAGES:
        if importlib.util.find_spec(name) is None:
            raise missing_package(ModuleNotFoundError(name=name))
    from mainstem.spark.pipeline.checking.spark_parser import NoParser, java

    try:
        found = java()
    except NoParser as error:
        raise CommandError(f"Spark needs Java: {error}", _HINT) from None
    version = java_version(found)
    if version is None or version < JAVA_MIN:
        told = "cannot be run" if version is None else f"is of version {version}"
        raise CommandError(f"Spark needs Java {JAVA_MIN} or later, and {found} {told}", _HINT)


def java_version(java: str) -> int | None:
    """The major version of a Java runtime; None when it does not tell."""
    try:
        asked = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(asked.stderr + asked.stdout)
    return int(match[1]) if match else None
