"""Groups of the classic rebalance protocol: members agree on who owns what, the coordinator keeps order.

A member joins, waits until all have joined, and gets the generation; the leader hands in the assignment with
its sync and everybody else waits for it with theirs. `rebalance.py` moves a group from phase to phase, the
requests have a module each.
"""

from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.groups import ClassicGroups

__all__ = ["ClassicGroup", "ClassicGroups"]
