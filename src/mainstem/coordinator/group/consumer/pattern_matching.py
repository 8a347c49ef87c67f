"""Matches all patterns of a group against all topics, a little at a time: others are served in between.

There is no clock here, so a slice ends after an amount of work that takes a few milliseconds at worst. Most
patterns take far less than what their size makes one fear.
"""

from collections.abc import Callable, Collection, Iterator
from logging import getLogger
from typing import Final

from mainstem.coordinator.group import regex
from mainstem.protocol.errors import KafkaError

logger = getLogger(__name__)

# Whether the member whose heartbeat asked for the matching may see a topic.
MaySee = Callable[[str], bool]

# Work is counted in steps of RE2, of up to 20 ns each: one for each instruction of the pattern's program and
# each character of the name. The other costs are in proportion.
_SLICE_STEPS: Final = 200_000
_MATCH_STEPS: Final = 100
_MAY_SEE_STEPS: Final = 200
_COMPILE_STEPS: Final = 50


class Matching:
    """One pass over the patterns. `resolved` grows, and is complete when `run_slice` says so."""

    def __init__(
        self,
        patterns: Collection[str],
        names: Collection[str],
        version: int,
        may_see: MaySee,
        started_ms: int,
    ) -> None:
        self.version = version
        self.started_ms = started_ms
        self.has_failed = False
        self.resolved: dict[str, frozenset[str]] = {}
        self._may_see = may_see
        self._work = self._match_all(tuple(patterns), names)

    def run_slice(self) -> bool:
        """Go on for a while; True when there is nothing left to do."""
        left = _SLICE_STEPS
        for steps in self._work:
            left -= steps
            if left <= 0:
                return False
        return True

    def _match_all(self, patterns: Collection[str], names: Collection[str]) -> Iterator[int]:
        """Yields how many steps each piece of work took."""
        for text in patterns:
            matched = []
            try:
                pattern = regex.compile_pattern(text)
            except KafkaError as error:
                # It was accepted once: by Kafka, which wrote the log, or by another version.
                logger.warning("a pattern of the log matches nothing: %s", error.message)
            else:
                yield pattern.size * _COMPILE_STEPS
                for name in names:
                    yield _MATCH_STEPS + pattern.size * len(name)
                    if pattern.matches(name):
                        yield _MAY_SEE_STEPS
                        if self._may_see(name):
                            matched.append(name)
            self.resolved[text] = frozenset(matched)
