"""A broker from its registration to the end of its controlled shutdown, as events and effects."""

import random

import pytest

from mainstem.cluster.broker_lifecycle import (
    Beat,
    Beaten,
    BrokerLifecycle,
    BrokerState,
    CaughtUp,
    Effect,
    Ended,
    Event,
    GivenUp,
    LeaderChanged,
    LogDirsChanged,
    Published,
    ReadyToServe,
    Refused,
    Register,
    Registered,
    Started,
    StopAsked,
    TimePassed,
    Unanswered,
    Unfenced,
)
from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatResponse
from mainstem.protocol.errors import ErrorCode

INTERVAL_MS = 2_000
REGISTRATION_MS = 60_000


class Played:
    """A broker and the time."""

    def __init__(self) -> None:
        self.broker = BrokerLifecycle(INTERVAL_MS, REGISTRATION_MS)
        self.now_ms = 1_000

    def step(self, event: Event) -> list[Effect]:
        return self.broker.step(event, self.now_ms)

    def wait(self) -> list[Effect]:
        """Until the broker wants to hear of the time."""
        assert self.broker.deadline_ms is not None, "it waits for an answer"
        self.now_ms = self.broker.deadline_ms
        return self.step(TimePassed())

    def answer(
        self, *, caught_up: bool = True, fenced: bool = False, shut_down: bool = False, code: int = 0
    ) -> list[Effect]:
        return self.step(Beaten(BrokerHeartbeatResponse(0, code, caught_up, fenced, shut_down)))


def running() -> Played:
    played = Played()
    played.step(Started())
    played.step(Registered(ErrorCode.NONE, 7))
    assert played.answer(fenced=True) == [CaughtUp()]
    played.step(ReadyToServe())
    assert played.answer() == [Unfenced()]
    return played


def test_a_broker_registers_catches_up_loads_its_logs_and_is_unfenced() -> None:
    played = Played()
    assert played.step(Started(previous_epoch=3)) == [Register(3)]
    assert played.step(Registered(ErrorCode.NONE, 7)) == [Beat(7, want_fence=True, want_shut_down=False)]
    assert played.answer(caught_up=False, fenced=True) == []
    assert played.step(Published(6)) == []
    assert played.step(Published(7)) == [Beat(7, want_fence=True, want_shut_down=False)]
    assert played.answer(fenced=True) == [CaughtUp()]
    assert played.broker.state is BrokerState.RECOVERY
    assert played.step(ReadyToServe()) == [Beat(7, want_fence=False, want_shut_down=False)]
    assert played.answer() == [Unfenced()]
    assert played.broker.deadline_ms == played.now_ms + INTERVAL_MS


def test_a_broker_that_is_ready_from_the_beginning_is_unfenced_by_its_first_heartbeat() -> None:
    played = Played()
    assert played.step(ReadyToServe()) == []
    played.step(Started())
    assert played.step(Registered(ErrorCode.NONE, 7)) == [Beat(7, want_fence=False, want_shut_down=False)]
    assert played.answer() == [CaughtUp(), Unfenced()]


def test_one_request_is_under_way_at_a_time_and_news_follow_it() -> None:
    played = running()
    assert len(played.wait()) == 1
    assert played.step(LogDirsChanged()) == []
    assert played.step(LeaderChanged()) == []
    assert played.answer() == [Beat(7, want_fence=False, want_shut_down=False)]
    assert played.answer() == []
    assert played.step(LeaderChanged()) == [Beat(7, want_fence=False, want_shut_down=False)]


def test_a_session_of_an_earlier_start_is_waited_for() -> None:
    played = Played()
    played.step(Started())
    for _ in range(20):
        assert played.step(Registered(ErrorCode.DUPLICATE_BROKER_REGISTRATION)) == []
        assert played.wait() == [Register(-1)]
    assert played.step(Unanswered()) == []
    assert played.wait() == [Register(-1)]
    assert played.broker.state is BrokerState.STARTING


def test_a_broker_that_is_refused_asks_more_and_more_seldom() -> None:
    played = Played()
    played.step(Started())
    pauses = []
    for _ in range(6):
        played.step(Registered(ErrorCode.DUPLICATE_BROKER_REGISTRATION))
        before_ms = played.now_ms
        assert played.wait() == [Register(-1)]
        pauses.append(played.now_ms - before_ms)
    assert pauses == [250, 500, 1_000, 2_000, 2_000, 2_000]


def test_a_broker_that_nobody_lets_in_gives_up() -> None:
    played = Played()
    assert played.step(Started()) == [Register(-1)]
    until_ms = played.now_ms + REGISTRATION_MS
    while not (effects := played.step(Unanswered())):
        assert played.wait() == [Register(-1)]
    assert effects == [GivenUp()]
    assert until_ms <= played.now_ms < until_ms + INTERVAL_MS
    assert played.broker.state is BrokerState.SHUTTING_DOWN


def test_a_broker_that_was_let_in_never_gives_up() -> None:
    played = running()
    played.answer(code=ErrorCode.BROKER_ID_NOT_REGISTERED)
    played.now_ms += 2 * REGISTRATION_MS
    assert played.step(Unanswered()) == []
    assert played.wait() == [Register(7)]


def test_a_broker_of_another_cluster_is_refused_for_good() -> None:
    played = Played()
    played.step(Started())
    assert played.step(Registered(ErrorCode.INCONSISTENT_CLUSTER_ID)) == [
        Refused(ErrorCode.INCONSISTENT_CLUSTER_ID)
    ]
    assert played.step(StopAsked()) == []


@pytest.mark.parametrize("code", [ErrorCode.BROKER_ID_NOT_REGISTERED, ErrorCode.STALE_BROKER_EPOCH])
def test_a_controller_that_does_not_know_the_broker_has_it_register_again(code: ErrorCode) -> None:
    played = running()
    played.wait()
    assert played.answer(code=code) == [Register(7)]
    assert played.step(Registered(ErrorCode.NONE, 40)) == [Beat(40, want_fence=False, want_shut_down=False)]
    assert played.answer() == []
    assert played.broker.state is BrokerState.RUNNING, "it goes on serving"


def test_a_broker_that_was_fenced_meanwhile_asks_soon_again() -> None:
    played = running()
    played.wait()
    assert played.answer(fenced=True) == []
    assert played.broker.deadline_ms is not None
    assert played.broker.deadline_ms < played.now_ms + INTERVAL_MS
    assert played.wait() == [Beat(7, want_fence=False, want_shut_down=False)]


def test_a_stop_waits_until_the_leaderships_are_away() -> None:
    played = running()
    assert played.step(StopAsked()) == [Beat(7, want_fence=False, want_shut_down=True)]
    for _ in range(5):
        assert played.answer() == []
        assert played.wait() == [Beat(7, want_fence=False, want_shut_down=True)]
    assert played.answer(shut_down=True) == [Ended(granted=True)]
    assert played.broker.state is BrokerState.SHUTTING_DOWN


def test_a_stop_follows_the_heartbeat_that_is_under_way() -> None:
    played = running()
    played.wait()
    assert played.step(StopAsked()) == []
    assert played.answer() == [Beat(7, want_fence=False, want_shut_down=True)]


def test_a_stop_without_a_controller_ends_all_the_same() -> None:
    played = running()
    began_ms = played.now_ms
    assert len(played.step(StopAsked())) == 1
    assert played.wait() == [Ended(granted=False)]
    assert played.now_ms - began_ms < 5_000


def test_a_stop_whose_heartbeats_fail_ends_all_the_same() -> None:
    played = running()
    began_ms = played.now_ms
    effects = played.step(StopAsked())
    while Ended(granted=False) not in effects:
        effects = played.step(Unanswered()) or played.wait()
    assert played.now_ms - began_ms < 5_000


def test_a_controller_that_never_lets_go_is_left_after_a_while() -> None:
    played = running()
    effects = played.step(StopAsked())
    while not any(isinstance(effect, Ended) for effect in effects):
        effects = played.answer() or played.wait()
    assert played.broker.state is BrokerState.SHUTTING_DOWN


def test_a_broker_that_leads_nothing_yet_stops_at_once() -> None:
    played = Played()
    played.step(Started())
    assert played.step(StopAsked()) == [Ended(granted=False)]
    assert played.step(Registered(ErrorCode.NONE, 7)) == []


@pytest.mark.parametrize("seed", range(200))
def test_whatever_happens_it_serves_only_unfenced_and_comes_to_an_end(seed: int) -> None:
    """Answers are lost, controllers change and forget: the broker always goes on by itself, and says what it
    says in order.
    """
    chance = random.Random(seed)
    played = Played()
    said: list[Effect] = []
    effects = played.step(Started())
    ready = False
    stop_at = chance.randrange(50, 400)
    for turn in range(2_000):
        said += effects
        if any(isinstance(effect, Ended) for effect in said):
            break
        if any(isinstance(effect, CaughtUp) for effect in said) and not ready and chance.random() < 0.3:
            ready = True
            effects = played.step(ReadyToServe())
        elif turn == stop_at:
            effects = played.step(StopAsked())
        elif chance.random() < 0.1:
            event: Event = chance.choice((LeaderChanged(), LogDirsChanged(), Published(turn)))
            effects = played.step(event)
        elif played.broker._under_way and chance.random() < 0.9:
            effects = played.step(answer_of(chance, played.broker, ready))
        elif played.broker.deadline_ms is not None:
            effects = played.wait()
        else:
            effects = played.step(Unanswered())
    kinds = [type(effect) for effect in said]
    assert kinds.count(Ended) == 1
    assert kinds.count(CaughtUp) <= 1
    assert kinds.count(Unfenced) <= 1
    if Unfenced in kinds:
        assert ready, "nobody is served before the logs are loaded"
        assert kinds.index(CaughtUp) < kinds.index(Unfenced)


def answer_of(chance: random.Random, broker: BrokerLifecycle, ready: bool) -> Event:
    if chance.random() < 0.2:
        return Unanswered()
    if not broker._registered:
        if chance.random() < 0.5:
            return Registered(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        return Registered(ErrorCode.NONE, broker.epoch + chance.randrange(1, 9))
    if chance.random() < 0.1:
        return Beaten(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    stopping = broker.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    return Beaten(
        BrokerHeartbeatResponse(
            is_caught_up=chance.random() < 0.7,
            is_fenced=not ready or chance.random() < 0.3,
            should_shut_down=stopping and chance.random() < 0.1,
        )
    )
