"""A group coordinator in memory whose offsets are also committed in transactions."""

from typing import Any

from mainstem.protocol.apis.k09_offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from mainstem.protocol.apis.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ZERO_UUID
from tests.coordinator.harness import Waiting
from tests.coordinator.offset_world import World


class TxnWorld(World):
    """`World`, with producers that are known by their ids."""

    def send_txn_commit(
        self, producer: int, group: str, at: dict[int, int], topic: str = "t", **fields: Any
    ) -> Waiting:
        metadata = fields.pop("metadata", "")
        epoch = fields.pop("epoch", -1)
        places = [TxnOffsetCommitRequestPartition(n, offset, epoch, metadata) for n, offset in at.items()]
        version = fields.pop("version", 5)
        request = TxnOffsetCommitRequest(
            "transactional id",
            group,
            producer,
            0,
            fields.pop("generation", -1),
            fields.pop("member", ""),
            fields.pop("instance", None),
            [TxnOffsetCommitRequestTopic(topic, places)],
        )
        assert not fields, f"unknown: {fields}"
        return self.harness.send(
            lambda m, token, now: m.offsets.commit_transactional(request, version, token, now)
        )

    def txn_commit(
        self, producer: int, group: str, at: dict[int, int], topic: str = "t", **fields: Any
    ) -> Any:
        """The errors that came back, by partition."""
        answer = self.send_txn_commit(producer, group, at, topic, **fields).answer
        if isinstance(answer, ErrorCode):
            return answer.name
        assert [answered.name for answered in answer.topics] == [topic]
        return {p.partition_index: ErrorCode(p.error_code).name for p in answer.topics[0].partitions}

    def end(self, producer: int, how: str) -> None:
        """`commit` or `abort` the transaction of a producer."""
        self.harness.end_transaction(producer, {"commit": True, "abort": False}[how])

    def stable(self, group: str, topic: str = "t") -> dict[int, int | str]:
        """The offsets of a topic, or why there is none, where only stable ones are asked for."""
        request = OffsetFetchRequestGroup(group)
        request.topics = [OffsetFetchRequestTopics(topic, ZERO_UUID, [0, 1, 2, 3])]
        return self._stable(request).get(topic, {})

    def stable_all(self, group: str) -> dict[str, dict[int, int | str]]:
        request = OffsetFetchRequestGroup(group)
        request.topics = None
        return self._stable(request)

    def _stable(self, request: OffsetFetchRequestGroup) -> dict[str, dict[int, int | str]]:
        answer = self.harness.send(lambda m, token, now: m.offsets.fetch(request, token, now, True)).answer
        assert not answer.error_code
        found: dict[str, dict[int, int | str]] = {}
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code:
                    assert (part.committed_offset, part.committed_leader_epoch, part.metadata) == (-1, -1, "")
                    found.setdefault(topic.name, {})[part.partition_index] = ErrorCode(part.error_code).name
                elif part.committed_offset != -1:
                    found.setdefault(topic.name, {})[part.partition_index] = part.committed_offset
        return found

    def open_transactions(self) -> dict[int, list[tuple[str, str, int]]]:
        """Where producers have offsets that wait for the end of their transactions."""
        pending = self.harness.machine.offsets.pending
        places: dict[int, list[tuple[str, str, int]]] = {}
        for place in pending.places():
            for producer_id in pending.at(place):
                places.setdefault(producer_id, []).append(tuple(place))
        assert {known: sorted(at) for known, at in pending._by_producer.items()} == {
            known: sorted(at) for known, at in places.items()
        }
        return places
