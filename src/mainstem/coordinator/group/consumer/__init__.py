"""Groups of the consumer protocol (KIP-848), in which the broker assigns the partitions.

`groups.py` is the way in; `reconcile.py` holds the rule that no partition ever has two owners.
"""

from mainstem.coordinator.group.consumer.groups import ConsumerGroups

__all__ = ["ConsumerGroups"]
