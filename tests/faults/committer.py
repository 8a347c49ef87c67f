"""A client that commits offsets as fast as it is answered, and knows what must be found again.

Each has groups of its own and commits ever larger offsets, so that what is found after a crash is the last
acknowledged one or a later one that was sent.
"""

from functools import partial
from random import Random
from threading import Event

from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from tests.faults.ledger import connect
from tests.support.target import when_settled
from tests.support.wire import ConnectionClosedError, WireClient

_BY_NAME = 9
_NOT_YET = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
Place = tuple[str, int]


class Committer:
    """Commits one to three partitions of one of its groups at a time."""

    def __init__(self, name: str, topic: str, partitions: int, seed: int) -> None:
        self._groups = [f"{name}-{number}" for number in range(3)]
        self._topic = topic
        self._partitions = partitions
        self._random = Random(seed)
        self._offset = 0
        self.sent: dict[Place, int] = {}
        self.acknowledged: dict[Place, int] = {}
        self.count = 0

    def live(self, broker: Broker, stop: Event) -> None:
        """Commit until told to stop, or until the broker is gone."""
        try:
            with connect(broker) as client:
                client.call(FindCoordinatorRequest(coordinator_keys=self._groups))
                while not stop.is_set():
                    self._commit(client)
        except (ConnectionClosedError, OSError):
            pass

    def _commit(self, client: WireClient) -> None:
        group = self._random.choice(self._groups)
        self._offset += 1
        chosen = self._random.sample(range(self._partitions), self._random.randint(1, 3))
        parts = [OffsetCommitRequestPartition(partition, self._offset) for partition in chosen]
        for partition in chosen:
            self.sent[group, partition] = self._offset
        request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(self._topic, partitions=parts)])
        for answer in client.call(request, _BY_NAME).topics[0].partitions:
            if answer.error_code not in _NOT_YET:
                assert answer.error_code == 0, ErrorCode(answer.error_code).name
                self.acknowledged[group, answer.partition_index] = self._offset
                self.count += 1

    def check(self, client: WireClient) -> None:
        """Every acknowledged commit is there, or one that was sent after it."""
        for group in self._groups:
            answer = when_settled(
                partial(self._fetch, client, group), lambda answer: answer.error_code not in _NOT_YET
            )
            assert answer.error_code == 0, ErrorCode(answer.error_code).name
            for part in answer.topics[0].partitions:
                place = (group, part.partition_index)
                first, last = self.acknowledged.get(place, -1), self.sent.get(place, -1)
                assert first <= part.committed_offset <= last, (
                    f"{place}: {part.committed_offset}, acknowledged was {first}, sent {last}"
                )
                # What was seen once may not be lost any more.
                self.acknowledged[place] = part.committed_offset

    def _fetch(self, client: WireClient, group: str) -> OffsetFetchResponseGroup:
        where = [OffsetFetchRequestTopics(self._topic, partition_indexes=list(range(self._partitions)))]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=where)])
        response: OffsetFetchResponse = client.call(request, _BY_NAME)
        return response.groups[0]
