"""The topics that the broker keeps for itself; clients may read them, but not write to or delete them."""

from typing import Final

CONSUMER_OFFSETS: Final = "__consumer_offsets"
INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, "__transaction_state", "__share_group_state"})


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS
