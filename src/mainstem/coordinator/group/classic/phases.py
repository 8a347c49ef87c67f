"""The states of a classic group, with the transitions that there are."""

from enum import Enum
from typing import Final


class Phase(Enum):
    """A group's state; the value is the name that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# From which states a state is reached.
PREVIOUS: Final[dict[Phase, frozenset[Phase]]] = {
    Phase.EMPTY: frozenset({Phase.PREPARING_REBALANCE}),
    Phase.PREPARING_REBALANCE: frozenset({Phase.STABLE, Phase.COMPLETING_REBALANCE, Phase.EMPTY}),
    Phase.COMPLETING_REBALANCE: frozenset({Phase.PREPARING_REBALANCE}),
    Phase.STABLE: frozenset({Phase.COMPLETING_REBALANCE}),
    Phase.DEAD: frozenset(Phase),
}
