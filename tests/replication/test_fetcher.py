"""The session of a follower's broker with a leader's: what it asks for, and what answers count."""

from collections.abc import Callable

import pytest

from mainstem.protocol.apis.k01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.replication.fetcher import FetcherSession, Limits

NODE = 3
BROKER_EPOCH = 77
SESSION = 9
TOPICS = {"a": b"a" * 16, "b": b"b" * 16}


class Copy:
    """A partition that follows."""

    def __init__(self, topic: str, index: int, end_offset: int = 0, epoch: int = 1) -> None:
        self.topic = topic
        self.topic_id = TOPICS[topic]
        self.index = index
        self.leader_epoch = 1
        self.fetch_position = (end_offset, epoch, 0)


class Talk:
    """A session, and what the leader's broker would say."""

    def __init__(self, *partitions: Copy) -> None:
        self.session: FetcherSession[Copy] = FetcherSession(NODE, Limits(500, 1, 2_000_000, 1_000_000))
        for partition in partitions:
            self.session.add(partition)

    def ask(self, now_ms: int = 0) -> FetchRequest:
        request = self.session.request(BROKER_EPOCH, now_ms)
        assert request is not None
        return request

    def answer(
        self,
        *partitions: Copy,
        session_id: int = SESSION,
        error: int = 0,
        take: Callable[[Copy], None] = lambda _: None,
    ) -> list[Copy]:
        """For which partitions an answer with something of each of these counts."""
        topics = [
            FetchableTopicResponse("", partition.topic_id, [PartitionData(partition_index=partition.index)])
            for partition in partitions
        ]
        counted = []
        response = FetchResponse(session_id=session_id, error_code=error, responses=topics)
        for partition, data in self.session.answered(response):
            assert data.partition_index == partition.index
            take(partition)
            counted.append(partition)
        return counted


def asked(request: FetchRequest) -> list[tuple[str, int, int]]:
    return [
        (topic.topic, part.partition, part.fetch_offset)
        for topic in request.topics
        for part in topic.partitions
    ]


def forgotten(request: FetchRequest) -> list[tuple[str, int]]:
    return [(topic.topic, index) for topic in request.forgotten_topics_data for index in topic.partitions]


def test_the_first_request_names_everything_and_opens_a_session() -> None:
    talk = Talk(Copy("a", 0, 5, 4), Copy("a", 1, 6), Copy("b", 0))
    request = talk.ask()
    assert asked(request) == [("a", 0, 5), ("a", 1, 6), ("b", 0, 0)]
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert request.replica_state is not None
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (NODE, BROKER_EPOCH)
    part = request.topics[0].partitions[0]
    assert (part.current_leader_epoch, part.last_fetched_epoch, part.log_start_offset) == (1, 4, 0)


def test_later_requests_name_only_what_moved() -> None:
    one, two = Copy("a", 0), Copy("a", 1)
    talk = Talk(one, two)
    talk.ask()

    def append(partition: Copy) -> None:
        if partition is two:
            two.fetch_position = (4, 1, 0)

    assert talk.answer(one, two, take=append) == [one, two]
    request = talk.ask()
    assert asked(request) == [("a", 1, 4)]
    assert (request.session_id, request.session_epoch) == (SESSION, 1)
    talk.answer()
    request = talk.ask()
    assert (asked(request), request.session_epoch) == ([], 2)


def test_a_partition_comes_and_goes_in_a_session() -> None:
    one, two = Copy("a", 0), Copy("b", 1)
    talk = Talk(one)
    talk.ask()
    talk.answer()
    talk.session.add(two)
    assert asked(talk.ask()) == [("b", 1, 0)]
    talk.answer()
    talk.session.remove((one.topic_id, 0))
    request = talk.ask()
    assert (asked(request), forgotten(request)) == ([], [("a", 0)])
    talk.answer()
    assert forgotten(talk.ask()) == []


def test_one_that_comes_back_before_it_was_forgotten_stays() -> None:
    one, two = Copy("a", 0), Copy("a", 1)
    talk = Talk(one, two)
    talk.ask()
    talk.answer()
    talk.session.remove((one.topic_id, 0))
    talk.session.add(one)
    request = talk.ask()
    assert (asked(request), forgotten(request)) == ([("a", 0, 0)], [])


def test_an_answer_to_a_former_epoch_does_not_count() -> None:
    one = Copy("a", 0)
    talk = Talk(one)
    talk.ask()
    one.leader_epoch = 2
    talk.session.add(one)
    assert talk.answer(one) == []
    request = talk.ask()
    assert request.topics[0].partitions[0].current_leader_epoch == 2


def test_an_answer_does_not_count_when_the_log_ends_elsewhere_by_now() -> None:
    one = Copy("a", 0, 8)
    talk = Talk(one)
    talk.ask()
    one.fetch_position = (5, 1, 0)
    assert talk.answer(one) == []
    assert asked(talk.ask()) == [("a", 0, 5)]


def test_a_log_start_that_moves_meanwhile_costs_no_answer() -> None:
    one = Copy("a", 0, 8)
    talk = Talk(one)
    talk.ask()
    one.fetch_position = (8, 1, 3)
    assert len(talk.answer(one)) == 1
    assert talk.ask().topics[0].partitions[0].log_start_offset == 3


def test_an_answer_for_what_was_not_asked_does_not_count() -> None:
    one, never = Copy("a", 0), Copy("b", 7)
    talk = Talk(one)
    talk.ask()
    assert talk.answer(never) == []


def test_a_failed_partition_rests_and_does_not_hold_up_others() -> None:
    one, two = Copy("a", 0), Copy("a", 1)
    talk = Talk(one, two)
    talk.ask()
    assert talk.answer(one, two) == [one, two]
    talk.session.rest(one, until_ms=100)
    request = talk.ask(50)
    assert (asked(request), forgotten(request)) == ([], [("a", 0)])
    assert talk.session.next_end_of_rest_ms == 100
    talk.answer()
    assert asked(talk.ask(100)) == [("a", 0, 0)]


def test_with_nothing_but_failed_ones_nothing_is_asked() -> None:
    one = Copy("a", 0)
    talk = Talk(one)
    talk.ask()
    talk.answer()
    talk.session.rest(one, until_ms=100)
    assert talk.session.request(BROKER_EPOCH, 99) is None
    talk.session.go_on(one)
    assert asked(talk.ask(99)) == [("a", 0, 0)]


@pytest.mark.parametrize("by_time", [True, False])
def test_what_rested_while_nothing_was_asked_is_not_forgotten_when_it_goes_on(by_time: bool) -> None:
    """A leader adds what a request names, and then forgets what it forgets."""
    one, two = Copy("a", 0), Copy("a", 1)
    talk = Talk(one, two)
    talk.ask()
    talk.answer()
    talk.session.rest(one, until_ms=100)
    talk.session.rest(two, until_ms=200)
    assert talk.session.request(BROKER_EPOCH, 99) is None
    if not by_time:
        talk.session.go_on(one)
    request = talk.ask(100 if by_time else 99)
    assert (asked(request), forgotten(request)) == ([("a", 0, 0)], [("a", 1)])


def test_a_lost_session_is_opened_anew_with_everything() -> None:
    one, two = Copy("a", 0), Copy("a", 1)
    talk = Talk(one, two)
    talk.ask()
    talk.answer()
    talk.ask()
    assert talk.answer(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND) == []
    request = talk.ask()
    assert (len(asked(request)), request.session_id, request.session_epoch) == (2, 0, 0)


def test_a_broker_without_room_for_sessions_hears_everything_each_time() -> None:
    one = Copy("a", 0)
    talk = Talk(one)
    for _ in range(3):
        request = talk.ask()
        assert (asked(request), request.session_epoch) == ([("a", 0, 0)], 0)
        assert len(talk.answer(one, session_id=0)) == 1


def test_nothing_is_asked_for_nothing() -> None:
    assert Talk().session.request(BROKER_EPOCH, 0) is None
