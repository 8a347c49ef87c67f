"""The standard streams of the process: one that is closed, full or abandoned ends a command in one line.

A closed stream is put in the place of its number, or the first socket would get that number, and what is
printed would go to a broker. It must stay importable without typer, rich or a client library.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress

_STDIN, _STDOUT, _STDERR = 0, 1, 2


class OutputLostError(Exception):
    """Standard output takes nothing more. No OSError, which would be taken for one of a file or a socket."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.reader_left = isinstance(error, BrokenPipeError)
        self.reason = reason(error)


def reason(error: OSError) -> str:
    """Why a stream cannot be read or written."""
    return "it is closed" if error.errno == errno.EBADF else (error.strerror or str(error)).lower()


class _Output(io.FileIO):
    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            raise OutputLostError(error) from None


def prepare() -> None:
    """At the start of a process: have all three streams, and tell a failing output from other failures."""
    if sys.stdout is not sys.__stdout__:
        return  # somebody has put another stream there, and looks after it
    for number, mode in ((_STDIN, os.O_WRONLY), (_STDOUT, os.O_RDONLY), (_STDERR, os.O_WRONLY)):
        _occupy(number, mode)
    former = sys.stdout
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(_STDOUT, "wb", closefd=False)),
        encoding=former.encoding if former is not None else None,
        errors="surrogateescape",  # a file name that is no UTF-8 is printed as it is
        line_buffering=former is not None and former.line_buffering,
    )
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(_STDIN, "rb", closefd=False)))
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(_STDERR, "wb", closefd=False)))


def abandon_output() -> None:
    """Nothing more goes to standard output, so that the flush at the exit of the process cannot fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def say(message: str) -> None:
    """A remark for the person at the terminal; it never mixes with a command's output, nor fails it."""
    with suppress(OSError):
        print(message, file=sys.stderr)


def _occupy(number: int, mode: int) -> None:
    """Where this number is free: a stream that cannot be read or written; errors go nowhere."""
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, mode)
        os.dup2(opened, number, inheritable=True)
        if opened != number:
            os.close(opened)
