"""How often a group of either protocol has rebalanced, and for how long.

A rebalance begins when a group that is stable or empty is disturbed, and ends when it is that again. The one
place where this is counted, for metrics and commands alike; a restart begins at nought.
"""

from typing import NamedTuple


class RebalanceTimes(NamedTuple):
    """What is known of one group. They never change, new ones follow; so the former can be put back."""

    started: int = 0
    completed: int = 0
    last_ms: int = 0
    total_ms: int = 0
    # When the one that is under way began.
    since_ms: int | None = None

    def begin(self, now_ms: int) -> "RebalanceTimes":
        """The group is disturbed; nothing new when it already was."""
        if self.since_ms is not None:
            return self
        return self._replace(started=self.started + 1, since_ms=now_ms)

    def end(self, now_ms: int) -> "RebalanceTimes":
        """The group is stable or empty."""
        if self.since_ms is None:
            return self
        last_ms = now_ms - self.since_ms
        return RebalanceTimes(self.started, self.completed + 1, last_ms, self.total_ms + last_ms)
