"""TxnOffsetCommit in a running broker: offsets that count with their transaction, whatever happens to it."""

from typing import Any

import pytest

from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.apis.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from mainstem.protocol.apis.k26_end_txn import EndTxnRequest
from mainstem.protocol.apis.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, create_topic, unique_name

_LOADING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS)
_IMPLICIT = 5  # the first version of TxnOffsetCommit that needs no AddOffsetsToTxn
UNSTABLE = "UNSTABLE_OFFSET_COMMIT"


class Producer:
    """One transactional producer that commits offsets for a group of its own."""

    def __init__(self, client: Client, topic: str, version: int) -> None:
        self.client = client
        self.topic = topic
        self.version = version
        self.name = unique_name("transactional")
        self.group = unique_name("group")
        self.producer_id, self.epoch = -1, -1

    async def start(self) -> None:
        await self._find_coordinator(0, self.group)
        await self.start_without_group()

    async def start_without_group(self) -> None:
        await self._find_coordinator(1, self.name)
        answer = await self._until_ready(InitProducerIdRequest(self.name, 60_000), 5)
        assert answer.error_code == 0
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    async def _find_coordinator(self, key_type: int, key: str) -> None:
        found = await self.client.call(FindCoordinatorRequest(key_type=key_type, key=key), 3)
        assert found.error_code == 0

    async def _until_ready(self, request: Any, version: int) -> Any:
        """The test's own limit ends the waiting."""
        while (answer := await self.client.call(request, version)).error_code in _LOADING:
            pass
        return answer

    async def add_offsets(self) -> str:
        request = AddOffsetsToTxnRequest(self.name, self.producer_id, self.epoch, self.group)
        return ErrorCode((await self._until_ready(request, 3)).error_code).name

    async def commit(self, at: dict[int, int], version: int | None = None, **fields: Any) -> dict[int, str]:
        """The errors by partition."""
        places = [TxnOffsetCommitRequestPartition(n, offset) for n, offset in at.items()]
        request = TxnOffsetCommitRequest(
            self.name,
            fields.pop("group", self.group),
            self.producer_id,
            fields.pop("epoch", self.epoch),
            topics=[TxnOffsetCommitRequestTopic(self.topic, places)],
            **fields,
        )
        answer = await self.client.call(request, self.version if version is None else version)
        parts = [part for topic in answer.topics for part in topic.partitions]
        return {part.partition_index: ErrorCode(part.error_code).name for part in parts}

    async def end(self, commit: bool) -> None:
        request = EndTxnRequest(self.name, self.producer_id, self.epoch, commit)
        answer = await self._until_ready(request, 5 if self.version >= _IMPLICIT else 3)
        assert answer.error_code == 0, ErrorCode(answer.error_code).name
        if self.version >= _IMPLICIT:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    async def fetch(self, stable: bool = True) -> dict[int, int | str]:
        """The offsets of the group, or why there is none."""
        wanted = [OffsetFetchRequestTopic(self.topic, [0, 1])]
        request = OffsetFetchRequest(self.group, wanted, require_stable=stable)
        answer = await self._until_ready(request, 7)
        assert answer.error_code == 0
        found: dict[int, int | str] = {}
        for part in answer.topics[0].partitions:
            if part.error_code:
                found[part.partition_index] = ErrorCode(part.error_code).name
            elif part.committed_offset != -1:
                found[part.partition_index] = part.committed_offset
        return found

    async def settled(self) -> dict[int, int | str]:
        """The offsets when the marker has come."""
        while UNSTABLE in (found := await self.fetch()).values():
            pass
        return found


async def _producer(client: Client, version: int = _IMPLICIT) -> Producer:
    topic = (await create_topic(client, partitions=2)).name
    producer = Producer(client, topic, version)
    await producer.start()
    return producer


@pytest.mark.parametrize("version", [0, 3, 4, 5])
async def test_offsets_count_with_their_transaction(client: Client, version: int) -> None:
    producer = await _producer(client, version)
    for number, commit in enumerate((True, False, True)):
        if version < _IMPLICIT:
            assert await producer.add_offsets() == "NONE"
        before = await producer.fetch()
        assert await producer.commit({0: number, 1: number}) == {0: "NONE", 1: "NONE"}
        assert await producer.fetch() == {0: UNSTABLE, 1: UNSTABLE}
        assert await producer.fetch(stable=False) == before
        await producer.end(commit)
        assert await producer.settled() == ({0: number, 1: number} if commit else before)


@pytest.mark.parametrize("version", [0, 3, 4])
async def test_a_group_that_was_not_added_to_the_transaction_is_refused(client: Client, version: int) -> None:
    producer = await _producer(client, version)
    error = "TRANSACTION_ABORTABLE" if version >= 4 else "INVALID_TXN_STATE"
    assert await producer.commit({0: 1}) == {0: error}
    assert await producer.fetch() == {}


async def test_no_transaction_has_a_partition_that_its_coordinator_does_not_know(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    producer = Producer(await connect(broker), "t", version=3)
    await producer.start_without_group()
    assert CONSUMER_OFFSETS not in broker.node.image.topics_by_name
    assert await producer.add_offsets() == "NONE"
    assert CONSUMER_OFFSETS in broker.node.image.topics_by_name, (
        "a partition that is not there would get no marker"
    )
    await producer.end(commit=True)


async def test_a_fenced_producer_commits_nothing(client: Client) -> None:
    old = await _producer(client)
    assert await old.commit({0: 1}) == {0: "NONE"}
    new = Producer(client, old.topic, old.version)
    new.name, new.group = old.name, old.group
    await new.start()
    assert await old.commit({0: 2}) == {0: "INVALID_PRODUCER_EPOCH"}
    assert await new.commit({0: 3}) == {0: "NONE"}
    assert await old.commit({0: 4}) == {0: "INVALID_PRODUCER_EPOCH"}
    await new.end(commit=True)
    assert await new.settled() == {0: 3}


async def test_a_member_that_is_not_known_commits_nothing(client: Client) -> None:
    producer = await _producer(client)
    errors = await producer.commit({0: 1}, generation_id=3, member_id="zombie")
    assert errors == {0: "ILLEGAL_GENERATION"}
    assert await producer.fetch() == {}


async def test_partitions_that_are_not_there_are_refused_one_by_one(client: Client) -> None:
    producer = await _producer(client)
    assert await producer.commit({1: 5, 9: 5}) == {9: "UNKNOWN_TOPIC_OR_PARTITION", 1: "NONE"}
    topic, producer.topic = producer.topic, unique_name("none")
    assert await producer.commit({0: 5}) == {0: "UNKNOWN_TOPIC_OR_PARTITION"}
    producer.topic = topic
    assert await producer.commit({0: 5}, group="") == {0: "INVALID_GROUP_ID"}
    assert await producer.fetch() == {1: UNSTABLE}


async def test_a_restart_leaves_a_transaction_open(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    producer = await _producer(await connect(broker))
    await producer.commit({0: 1})
    await producer.end(commit=True)
    await producer.commit({0: 2, 1: 2})
    place = [OffsetCommitRequestPartition(1, 7)]
    plain = OffsetCommitRequest(
        producer.group, topics=[OffsetCommitRequestTopic(producer.topic, partitions=place)]
    )
    assert (await producer.client.call(plain, 9)).topics[0].partitions[0].error_code == 0
    await broker.close()

    again = await make_broker(data_dir=broker.data_dir)
    producer.client = await connect(again)
    assert await producer.fetch() == {0: UNSTABLE, 1: UNSTABLE}
    assert await producer.fetch(stable=False) == {0: 1, 1: 7}
    await producer.end(commit=True)
    assert await producer.settled() == {0: 2, 1: 7}, (
        "what was committed last, outside of the transaction, is newer"
    )
    await again.close()

    last = await make_broker(data_dir=broker.data_dir)
    producer.client = await connect(last)
    assert await producer.fetch() == {0: 2, 1: 7}


async def test_without_verification_the_group_is_taken_as_added(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"transaction.partition.verification.enable": "false"})
    producer = await _producer(await connect(broker), version=3)
    assert await producer.commit({0: 1}) == {0: "NONE"}
    assert await producer.fetch() == {0: UNSTABLE}


async def test_a_marker_of_the_coordinator_ends_what_is_open(broker: InProcessBroker, client: Client) -> None:
    producer = await _producer(client)
    await producer.commit({0: 1})
    groups = broker.node.groups
    index = groups.partition_of(producer.group)
    groups.write_marker(index, producer.producer_id, producer.epoch + 1, 0, True, 2)
    assert await producer.fetch() == {0: 1}
