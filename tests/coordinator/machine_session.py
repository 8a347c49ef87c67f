"""What the transcripts of the coordinators' machines have in common: commands are methods of the session.

`name plain word=value` calls `_name("plain", word="value")`, which may return lines. Below `in one turn`
stand the commands of one turn of the shell. A change of the group's state is a line of its own.
"""

from abc import abstractmethod
from collections.abc import Iterable

from tests.coordinator.harness import Harness
from tests.support.played_transcript import PlayedSession

GROUP = "orders"


class MachineSession(PlayedSession):
    """Plays commands to the machine of `_harness`."""

    _harness: Harness

    def outcome(self, command: str) -> list[str]:
        before = self._state()
        lines = self._run(command) + self._outcome()
        after = self._state()
        if before != after:
            lines.append(f"{GROUP}: {before} -> {after}")
        return lines

    def _state(self) -> str:
        """Of the group, where there is one."""
        return ""

    @abstractmethod
    def _outcome(self) -> list[str]:
        """Answers and records since the last command."""

    def _run(self, command: str) -> list[str]:
        first, *others = command.splitlines()
        if first != "in one turn":
            assert not others, f"{command!r} is more than one command"
            return self._command(first)
        with self._harness.turn():
            return [line for other in others for line in self._command(other.strip())]

    def _command(self, line: str) -> list[str]:
        name, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        lines: Iterable[str] | None = getattr(self, f"_{name.replace('-', '_')}")(*plain, **options)
        return list(lines or [])
