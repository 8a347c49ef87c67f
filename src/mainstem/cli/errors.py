"""The one exception by which a subcommand gives up: a sentence for the person, and what to do next.

It must stay importable without typer, rich or a client library, because `up` uses it too.
"""

from __future__ import annotations

from mainstem.cli.command_name import typeable
from mainstem.cli.streams import say


class CommandError(Exception):
    """Ends the command with `message` on stderr (and `hint` on the line below), never with a traceback."""

    def __init__(self, message: str, hint: str | None = None, exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


def in_two_lines(text: str, otherwise: str | None = None, exit_code: int = 1) -> CommandError:
    """An error whose text ends with what to do, behind a semicolon, where that is known."""
    message, found, hint = text.rpartition("; ")
    return CommandError(message, hint, exit_code) if found else CommandError(text, otherwise, exit_code)


def report(error: CommandError) -> int:
    """Print the error the way every subcommand does, and return the exit code that goes with it."""
    say(f"mainstem: {error.message}")
    if error.hint:
        say(f"  -> {typeable(error.hint)}")
    return error.exit_code
