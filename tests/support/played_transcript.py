"""Transcripts of a state machine: paragraphs of a command, a line of dashes, and what came out, as text.

A session plays the commands of a file again; what comes out must be what is written there.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path


class PlayedSession(ABC):
    """Plays the commands of one transcript, each with what the ones before it left behind."""

    def play(self, text: str) -> str:
        """The transcript with its outcomes as they are now."""
        return "\n\n".join(map(self._paragraph, text.strip().split("\n\n"))) + "\n"

    def _paragraph(self, paragraph: str) -> str:
        if paragraph.startswith("#"):
            return paragraph
        command = paragraph.partition("\n----")[0]
        return "\n".join([command, "----", *(list(self.outcome(command)) or ["(nothing)"])])

    @abstractmethod
    def outcome(self, command: str) -> Iterable[str]:
        """The lines that come out of a command."""


def assert_as_written_down(path: Path, new_session: Callable[[], PlayedSession]) -> None:
    """Play a file, or with MAINSTEM_RECORD_TRANSCRIPTS write its outcomes anew."""
    outcome = new_session().play(path.read_text())
    if os.environ.get("MAINSTEM_RECORD_TRANSCRIPTS"):
        path.write_text(outcome)
    assert outcome == path.read_text()
