"""Runs a command line of `mainstem` inside the test's process, with streams of its own.

A hundred processes that each import a client library would take minutes. What only a process can show
(signals, pipes, terminals, start-up) is tested with real ones.
"""

import io
import os
import subprocess
from collections.abc import Mapping
from unittest import mock

from mainstem.cli.main import main


def run_command(
    *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The exit code and what was printed, as if it had been a process."""
    streams = [io.TextIOWrapper(io.BytesIO(data), encoding="utf-8") for data in (stdin.encode(), b"", b"")]
    with (
        mock.patch("sys.stdin", streams[0]),
        mock.patch("sys.stdout", streams[1]),
        mock.patch("sys.stderr", streams[2]),
        mock.patch.dict(os.environ, {"COLUMNS": "100", **(environment or {})}),
    ):
        code = main(arguments)
        printed = [_content(stream) for stream in streams[1:]]
    return subprocess.CompletedProcess(arguments, code, *printed)


def _content(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
