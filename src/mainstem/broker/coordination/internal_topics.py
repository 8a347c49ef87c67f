"""The topics that the broker keeps for itself; clients may read them, but not write to or delete them."""

from typing import Final

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, "__share_group_state"})


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS
