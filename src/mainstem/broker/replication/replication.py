"""The replication of one broker: which partitions are fetched from whom, and who is in sync where it leads.

Several connections lead to each broker that is followed, so that while what came on one is checked and
written, the next answer is on its way on another. A partition stays on its lane, whatever epoch it is in.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from mainstem.broker.logs.partition import Partition
from mainstem.broker.replication.isr_proposals import IsrProposals
from mainstem.broker.replication.replica_fetcher import Fetching, ReplicaFetcher
from mainstem.replication.fetcher import Limits
from mainstem.replication.leader_state import LeaderState, Proposal
from mainstem.replication.roles import Follower
from mainstem.storage.flush import FlushWork
from mainstem.wire.errors import Address

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

_LANES: Final = 2
_BYTES_PER_ANSWER: Final = 2 * 1024 * 1024

Lane = tuple[int, int]  # the leader's broker, and which of the connections to it


class Replication:
    """Made when there is another broker."""

    def __init__(
        self,
        server: "SharedServer",
        partitions: Callable[[], Iterable[Partition]],
        address_of: Callable[[int], Address | None],
    ) -> None:
        config = server.config
        self._server = server
        self._partitions = partitions
        self._address_of = address_of
        self._fetching = Fetching(
            limits=Limits(
                max_wait_ms=config.get("replica.fetch.wait.max.ms"),
                min_bytes=config.get("replica.fetch.min.bytes"),
                max_bytes=min(_BYTES_PER_ANSWER, config.get("replica.fetch.response.max.bytes")),
                partition_max_bytes=config.get("replica.fetch.max.bytes"),
            ),
            backoff_ms=config.get("replica.fetch.backoff.ms"),
            timeout_s=config.get("replica.socket.timeout.ms") / 1000,
        )
        self._fetchers: dict[Lane, ReplicaFetcher] = {}
        self._lane_of: dict[Partition, Lane] = {}
        self._proposals = IsrProposals(server)
        self._review_seconds: float = config.get("replica.lag.time.max.ms") / 2000
        self._review = server.loop.create_task(self._review_now_and_then())

    # ---- what is followed

    def role_changed(self, partition: Partition) -> None:
        """It may have to be fetched from another broker now, or in another epoch, or not any more."""
        role = partition.role
        wanted: Lane | None = None
        if isinstance(role, Follower) and role.leader_id >= 0 and not partition.deleted:
            wanted = role.leader_id, (partition.topic_id[-1] + partition.index) % _LANES
        lane = self._lane_of.get(partition)
        if lane is not None and lane != wanted:
            self._leave(partition, lane)
        if wanted is not None:
            self._lane_of[partition] = wanted
            self._fetcher(wanted).add(partition)

    def _leave(self, partition: Partition, lane: Lane) -> None:
        del self._lane_of[partition]
        fetcher = self._fetchers[lane]
        fetcher.remove(partition)
        if not fetcher.fetches_anything:
            del self._fetchers[lane]
            fetcher.close()

    def _fetcher(self, lane: Lane) -> ReplicaFetcher:
        fetcher = self._fetchers.get(lane)
        if fetcher is None:
            fetcher = self._fetchers[lane] = ReplicaFetcher(self._server, lane[0], self._fetching)
            fetcher.found_at(self._address_of(lane[0]))
        return fetcher

    def sync_cut(self, partition: Partition, work: FlushWork) -> None:
        """Fetch nothing for it until it is on disk that it was cut."""
        lane = self._lane_of.get(partition)
        if lane is not None:
            self._fetchers[lane].leave_alone(partition)
        future = self._server.loop.run_in_executor(None, work.run)
        future.add_done_callback(partial(self._cut_is_synced, partition))

    def _cut_is_synced(self, partition: Partition, future: asyncio.Future[None]) -> None:
        error = future.exception()
        if error is None:
            self.followed_to_disk(partition)
        else:  # its directory is offline
            logger.error("%s was cut, and cannot be synced: %s", partition, error)

    def followed_to_disk(self, partition: Partition) -> None:
        lane = self._lane_of.get(partition)
        if lane is not None:
            self._fetchers[lane].go_on_with(partition)

    # ---- brokers

    def brokers_changed(self) -> None:
        """They may be elsewhere, gone, or back; whoever waits to come into sync may do so now."""
        for (leader_id, _), fetcher in self._fetchers.items():
            fetcher.found_at(self._address_of(leader_id))
        now_ms = self._server.clock.now_ms()
        for partition in self._partitions():
            if isinstance(partition.role, LeaderState) and partition.role.lacks_replicas:
                partition.review_replicas(now_ms)

    # ---- who is in sync

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        self._proposals.add(partition, proposal)

    async def _review_now_and_then(self) -> None:
        """Who falls behind says nothing that one could act on."""
        while True:
            await asyncio.sleep(self._review_seconds)
            try:
                await self._review_all()
            except Exception:
                logger.exception("cannot look who is in sync; it is tried again")

    async def _review_all(self) -> None:
        turn = self._server.turns.begin()
        for partition in list(self._partitions()):
            partition.review_replicas(self._server.clock.now_ms())
            await turn.yield_to_loop()

    async def stop(self) -> None:
        """Fetch nothing more, propose nothing more."""
        self._review.cancel()
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._lane_of.clear()
        await asyncio.gather(self._review, self._proposals.stop(), return_exceptions=True)
