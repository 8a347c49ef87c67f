"""Who gets which partitions in a group of the consumer protocol (KIP-848): the broker's own assignors.

`assign` is the way in. It knows nothing of epochs, nor of who still has to give something up: it only says
what the group should come to.
"""

from mainstem.coordinator.group.assignors.range import assign_range
from mainstem.coordinator.group.assignors.spec import Assignment, GroupSpec, MemberSpec
from mainstem.coordinator.group.assignors.uniform import assign_uniform

__all__ = ["ASSIGNORS", "Assignment", "GroupSpec", "MemberSpec", "assign"]

# The first is the one a group gets whose members ask for none.
ASSIGNORS = {"uniform": assign_uniform, "range": assign_range}


def assign(name: str, spec: GroupSpec) -> Assignment:
    """The target assignment of every member; one that gets nothing is there with nothing."""
    return ASSIGNORS[name](spec) if spec.members else {}
