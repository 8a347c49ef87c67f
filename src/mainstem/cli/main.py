"""Entry point of the `mainstem` command: sends each subcommand to its module.

`up` has to be ready in a fraction of a second, so it is routed by hand to a module that imports neither
typer, rich nor a client library; everything else, including `up --help`, goes through the typer application.
This module must never import either side at the top.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mainstem import __version__
from mainstem.cli import streams

HELP_FLAGS = frozenset({"--help", "-h"})
INTERRUPTED = 130
VERSION_FLAGS = frozenset({"--version", "-V"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one `mainstem` command line and return its exit code."""
    streams.prepare()
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except streams.OutputLostError as lost:
        streams.abandon_output()
        if lost.reader_left:  # head or less has seen enough
            return 0
        streams.say(f"mainstem: cannot write to standard output: {lost.reason}")
        return 1
    except KeyboardInterrupt:  # whatever was being done, imports included
        return INTERRUPTED
    return code


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["up"] and not HELP_FLAGS.intersection(arguments):
        from mainstem.cli.up.command import main as run_up

        return run_up(arguments[1:])
    if len(arguments) == 1 and arguments[0] in VERSION_FLAGS:
        print(f"mainstem {__version__}")
        return 0
    from mainstem.cli.app import run as run_app

    return run_app(arguments)
