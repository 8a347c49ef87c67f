"""Fetch, request by request: offsets, limits, epochs, sessions, topic ids."""

import itertools
import time
from collections.abc import Iterator

from mainstem.protocol.apis.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ZERO_UUID, random_uuid
from tests.support.scenario import append, fetch_request, topic_id
from tests.support.target import Target
from tests.support.transcript import Transcript
from tests.support.wire import WireClient


def test_offsets_and_limits(target: Target) -> None:
    topic = target.create_topic(partitions=2)
    transcript = Transcript(target, "fetch_offsets")
    transcript.stand_in(topic, "topic")
    with WireClient(target) as client:
        append(client, topic, [2, 3, 5])
        for offset in (0, 1, 2, 4, 9, 10, 11, -1, -2, 1 << 60):
            transcript.note(f"offset {offset} of 0..9", client.call(fetch_request(topic, offset), 12))
        for version in (4, 5, 7, 9, 11, 12):
            transcript.note(f"version {version}, in mid-batch", client.call(fetch_request(topic, 3), version))
        for limit in (0, 1, 100, 250):
            answer = client.call(fetch_request(topic, 0, max_bytes=limit), 12)
            transcript.note(f"at most {limit} bytes of the partition", answer)
            request = fetch_request(topic, 0)
            request.max_bytes = limit
            transcript.note(f"at most {limit} bytes in all", client.call(request, 12))
        transcript.note("read_committed", client.call(fetch_request(topic, 5, isolation_level=1), 12))
        transcript.note("unknown partition", client.call(fetch_request(topic, 0, partition=2), 12))
        transcript.note("negative partition", client.call(fetch_request(topic, 0, partition=-1), 12))
        transcript.note("unknown topic", client.call(fetch_request("no-such-topic", 0), 12))
        transcript.note("empty partition", client.call(fetch_request(topic, 0, partition=1), 12))
        transcript.note("empty partition, offset 1", client.call(fetch_request(topic, 1, partition=1), 12))
    transcript.check()


def test_the_first_partition_with_data_is_served_when_the_limit_is_small(target: Target) -> None:
    topic = target.create_topic(partitions=3)
    transcript = Transcript(target, "fetch_several_partitions")
    transcript.stand_in(topic, "topic")
    with WireClient(target) as client:
        append(client, topic, [2, 2], partition=1)
        append(client, topic, [2, 2], partition=2)
        partitions = [
            FetchPartition(number, fetch_offset=0, partition_max_bytes=1 << 20) for number in range(3)
        ]
        for limit in (0, 1, 200, 1 << 20):
            request = FetchRequest(max_bytes=limit, topics=[FetchTopic(topic, partitions=partitions)])
            transcript.note(f"at most {limit} bytes in all", client.call(request, 12))
        for partition in partitions:
            partition.partition_max_bytes = 1
        request = FetchRequest(topics=[FetchTopic(topic, partitions=partitions)])
        transcript.note("at most 1 byte of each partition", client.call(request, 12))
        for partition in partitions:
            partition.partition_max_bytes = 150
        transcript.note("at most 150 bytes of each partition", client.call(request, 12))
    transcript.check()


def test_leader_epochs(target: Target, topic: str) -> None:
    transcript = Transcript(target, "fetch_epochs")
    transcript.stand_in(topic, "topic")
    with WireClient(target) as client:
        append(client, topic, [4])
        for epoch in (-1, 0, 1, 5):
            transcript.note(
                f"current leader epoch {epoch}", client.call(fetch_request(topic, 0, epoch=epoch), 12)
            )
        for epoch in (-1, 0, 1):
            answer = client.call(fetch_request(topic, 4, epoch=0, last_epoch=epoch), 12)
            transcript.note(f"last fetched epoch {epoch}", answer)
    transcript.check()


def test_topics_by_id(target: Target, topic: str) -> None:
    transcript = Transcript(target, "fetch_topic_ids")
    with WireClient(target) as client:
        append(client, topic, [2])
        known = transcript.stand_in(topic_id(client, topic), "id")
        unknown = transcript.stand_in(random_uuid(), "unknown id")
        for version in (13, 15, 18):
            for name, uuid in (("known", known), ("unknown", unknown), ("zero", ZERO_UUID)):
                partition = FetchPartition(partition_max_bytes=1 << 20)
                request = FetchRequest(topics=[FetchTopic(topic_id=uuid, partitions=[partition])])
                transcript.note(f"version {version}, {name} id", client.call(request, version))
    transcript.check()


def _session_request(topic: str, session_id: int, epoch: int, offsets: dict[int, int]) -> FetchRequest:
    partitions = [
        FetchPartition(number, fetch_offset=offset, partition_max_bytes=1 << 20)
        for number, offset in offsets.items()
    ]
    topics = [FetchTopic(topic, partitions=partitions)] if partitions else []
    return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics)


def test_incremental_sessions(target: Target) -> None:
    topic = target.create_topic(partitions=3)
    transcript = Transcript(target, "fetch_sessions")
    transcript.stand_in(topic, "topic")
    with WireClient(target) as client:
        append(client, topic, [2], partition=0)
        append(client, topic, [2], partition=1)
        first = client.call(_session_request(topic, 0, 0, {0: 0, 1: 0, 2: 0}), 12)
        session = transcript.stand_in(first.session_id, "session")
        transcript.note("a new session", first)

        def step(title: str, request: FetchRequest) -> None:
            transcript.note(title, client.call(request, 12))

        step("same offsets again", _session_request(topic, session, 1, {}))
        step("moved to the ends", _session_request(topic, session, 2, {0: 2, 1: 2}))
        step("nothing new", _session_request(topic, session, 3, {}))
        append(client, topic, [1], partition=2)
        step("one partition has news", _session_request(topic, session, 4, {}))
        step("an epoch left out", _session_request(topic, session, 6, {}))
        step("an unknown session", _session_request(topic, session ^ 1, 5, {}))
        step("an offset out of range", _session_request(topic, session, 5, {0: 99}))
        step("the error is repeated", _session_request(topic, session, 6, {}))
        step("an unknown partition joins", _session_request(topic, session, 7, {0: 2, 9: 0}))
        request = _session_request(topic, session, 8, {})
        request.forgotten_topics_data = [ForgottenTopic(topic, partitions=[9, 2])]
        step("partitions are forgotten", request)
        append(client, topic, [1], partition=2)
        append(client, topic, [1], partition=1)
        step("news of a forgotten partition and another", _session_request(topic, session, 9, {}))
        step("closed with a full fetch", _session_request(topic, session, -1, {1: 2}))
        step("the closed session", _session_request(topic, session, 10, {}))
        step("a session that is opened empty", _session_request(topic, 0, 0, {}))
        step("no session", _session_request(topic, 0, -1, {1: 3}))
        step("session id without being opened", _session_request(topic, 0, 1, {1: 3}))
    transcript.check()


def test_a_session_learns_what_became_of_a_deleted_topic(target: Target, topic: str) -> None:
    admin = target.admin()
    with WireClient(target) as client:
        asked = FetchTopic(topic_id=topic_id(client, topic), partitions=[FetchPartition()])
        session = client.call(FetchRequest(session_epoch=0, topics=[asked])).session_id

        def error_in_session(epoch: int) -> int:
            answer = client.call(FetchRequest(session_id=session, session_epoch=epoch, max_wait_ms=0))
            return answer.responses[0].partitions[0].error_code if answer.responses else 0

        def await_error(code: ErrorCode, epochs: Iterator[int]) -> None:
            # Apache Kafka answers a deletion and a creation a moment before the broker knows of them.
            deadline = time.monotonic() + 30
            while error_in_session(next(epochs)) != code:
                assert time.monotonic() < deadline, f"no {code.name}"

        epochs = itertools.count(1)
        admin.delete_topics([topic])[topic].result(30)
        await_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, epochs)
        target.create_topic(topic)
        await_error(ErrorCode.INCONSISTENT_TOPIC_ID, epochs)


def test_no_partition_of_a_session_starves(target: Target) -> None:
    topic = target.create_topic(partitions=3)
    served: list[int] = []
    with WireClient(target) as client:
        for partition in range(3):
            append(client, topic, [2], partition=partition)
        session = 0
        for epoch in range(7):
            request = _session_request(topic, session, epoch, {} if session else {0: 0, 1: 0, 2: 0})
            request.max_bytes = 1
            answer = client.call(request, 12)
            session = answer.session_id
            served += [part.partition_index for part in answer.responses[0].partitions if part.records]
    # Partitions that returned data move to the end: after the first, each has its turn.
    assert sorted(served[1:4]) == [0, 1, 2]
    assert served[4:] == served[1:4]


def test_a_parked_fetch_is_answered_when_data_arrives(target: Target, topic: str) -> None:
    transcript = Transcript(target, "fetch_parked")
    transcript.stand_in(topic, "topic")
    with WireClient(target) as waiting, WireClient(target) as client:
        waiting.send(fetch_request(topic, 0, max_wait_ms=20_000, min_bytes=1), 12)
        append(client, topic, [2])
        transcript.note("parked until one byte is there", waiting.receive())
        waiting.send(fetch_request(topic, 0, max_wait_ms=20_000, min_bytes=1 << 20), 12)
        waiting.send(fetch_request(topic, 9, max_wait_ms=20_000, min_bytes=1 << 20), 12)
        append(client, topic, [1])
        big = fetch_request(topic, 0, max_wait_ms=100, min_bytes=1 << 20)
        transcript.note("not enough bytes in time", client.call(big, 12))
        out_of_range = fetch_request(topic, 9, max_wait_ms=20_000, min_bytes=1 << 20)
        transcript.note("an error does not wait", client.call(out_of_range, 12))
    transcript.check()
