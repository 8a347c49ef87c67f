"""Fetches that wait at the leader: for records, for a high watermark that the replica does not know yet, or
for their time to be over.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from mainstem.cluster.raft.effects import Reply, ReplyRecords
from mainstem.cluster.raft.framing import fetch_response
from mainstem.cluster.raft.messages import Token
from mainstem.protocol.apis.k01_fetch import FetchResponse, PartitionData
from mainstem.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica


class WaitingFetch(Struct, frozen=True, gc=False):
    token: Token
    listener: str
    offset: int
    max_bytes: int
    # What the replica knows to be committed; a request before version 18 does not say and is not woken.
    high_watermark: int
    deadline_ms: int


class WaitingFetches:
    def __init__(self) -> None:
        self._fetches: list[WaitingFetch] = []

    def add(self, fetch: WaitingFetch) -> None:
        self._fetches.append(fetch)

    def answer(self, replica: "Replica") -> None:
        """Answer those for whom there is something now."""
        waiting, self._fetches = self._fetches, []
        for fetch in waiting:
            if fetch.offset < replica.end_offset:
                answer_records(replica, fetch)
            elif fetch.high_watermark < (-1 if replica.high_watermark is None else replica.high_watermark):
                replica.effects.append(Reply(fetch.token, good_answer(replica, fetch.listener)))
            else:
                self._fetches.append(fetch)

    def poll(self, replica: "Replica") -> int | None:
        """Answer those whose time is over; when the next one's is."""
        over = [fetch for fetch in self._fetches if fetch.deadline_ms <= replica.now_ms]
        self._fetches = [fetch for fetch in self._fetches if fetch.deadline_ms > replica.now_ms]
        for fetch in over:
            replica.effects.append(Reply(fetch.token, good_answer(replica, fetch.listener)))
        return min((fetch.deadline_ms for fetch in self._fetches), default=None)

    def give_up(self, replica: "Replica") -> None:
        """This node leads no more."""
        for fetch in self._fetches:
            partition = PartitionData(
                error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=-1, records=b""
            )
            replica.effects.append(Reply(fetch.token, fetch_response(replica, fetch.listener, partition)))
        self._fetches = []


def good_answer(replica: "Replica", listener: str) -> FetchResponse:
    """An answer without records."""
    high_watermark = -1 if replica.high_watermark is None else replica.high_watermark
    partition = PartitionData(
        high_watermark=high_watermark, log_start_offset=replica.log.start_offset, records=b""
    )
    return fetch_response(replica, listener, partition)


def answer_records(replica: "Replica", fetch: WaitingFetch) -> None:
    replica.effects.append(
        ReplyRecords(fetch.token, good_answer(replica, fetch.listener), fetch.offset, fetch.max_bytes)
    )
