"""What the leaders of a node know about the other brokers: who is there, in which epoch, and who is leaving.

One object for all partitions of a node, which the metadata renews in place. A replica may come into sync only
while its broker is there and stays, and only as the very incarnation that fetches: one that started again may
have lost what the former one had (KIP-841, KIP-903).
"""

from collections.abc import Iterable, Mapping, Set
from typing import Final

NO_EPOCH: Final = -1

# Long enough to hear of a new leader and to fetch from it.
_AWAITED_MS: Final = 2_000


class Brokers:
    """The brokers of the cluster as a leader sees them."""

    __slots__ = ("_awaited_until_ms", "epochs", "lag_ms_max", "leaving")

    def __init__(self, lag_ms_max: int) -> None:
        # For so long a follower may be behind and still counts as in sync (`replica.lag.time.max.ms`).
        self.lag_ms_max = lag_ms_max
        # By broker id; a fenced one is not in it.
        self.epochs: Mapping[int, int] = {}
        self.leaving: Set[int] = frozenset()  # they are being shut down
        self._awaited_until_ms: dict[int, int] = {}

    def is_stale(self, broker_id: int, epoch: int) -> bool:
        """Whether a newer incarnation of the broker is known than the one that speaks."""
        return epoch != NO_EPOCH and self.epochs.get(broker_id, NO_EPOCH) > epoch

    def may_be_in_sync(self, broker_id: int, epoch: int | None) -> bool:
        """Whether a replica that fetches in this epoch (None: it has not fetched yet) can be in sync."""
        known = self.epochs.get(broker_id)
        if known is None or epoch is None or broker_id in self.leaving:
            return False
        return epoch in (NO_EPOCH, known)

    def await_fetches(self, broker_ids: Iterable[int], now_ms: int) -> None:
        """These follow a partition that has a new leader here, and will fetch it as soon as they know."""
        for broker_id in broker_ids:
            self._awaited_until_ms[broker_id] = now_ms + _AWAITED_MS

    def is_awaited(self, broker_id: int, now_ms: int) -> bool:
        """Whether a fetch of this broker is not to be kept waiting: the next one may ask for more partitions,
        which clients are waiting for.
        """
        return now_ms < self._awaited_until_ms.get(broker_id, 0)
