"""Work that yields to the event loop: in turns of a bounded length, and all of it in one circle."""

import asyncio
from collections.abc import Callable

import pytest

from mainstem.broker.clock import Clock
from mainstem.broker.turns import LONG_TURN_MS, TURN_MS, Turn, Turns


class HandClock(Clock):
    """Moves when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.ns = 0

    def ticks_ns(self) -> int:
        return self.ns

    def passes_ms(self, ms: float) -> None:
        self.ns += int(ms * 1_000_000)


class Steps:
    """Work of so many steps, each of which takes a while."""

    def __init__(self, clock: HandClock, count: int, step_ms: float, done: Callable[[], None]) -> None:
        self._clock, self._left, self._step_ms, self._done = clock, count, step_ms, done

    def go_on(self, turn: Turn) -> bool:
        while self._left:
            self._left -= 1
            self._clock.passes_ms(self._step_ms)
            self._done()
            if turn.is_over:
                break
        return self._left > 0


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


async def passes(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_is_short_is_done_at_once(clock: HandClock) -> None:
    turns = Turns(asyncio.get_running_loop(), clock)
    done: list[str] = []
    turns.run([Steps(clock, 2, LONG_TURN_MS / 8, lambda: done.append("a")) for _ in range(3)])
    assert done == ["a"] * 6


async def test_what_is_left_goes_on_in_a_circle_one_piece_in_a_pass(clock: HandClock) -> None:
    turns = Turns(asyncio.get_running_loop(), clock)
    done: list[str] = []
    turns.run([Steps(clock, 7, LONG_TURN_MS, lambda: done.append("a"))])
    for name in "bc":
        turns.later(Steps(clock, 6, TURN_MS / 2, lambda name=name: done.append(name)))  # type: ignore[misc]
    assert done == ["a"]
    for expected in ("a", "bb", "cc") * 3:
        done.clear()
        await passes(1)
        assert "".join(done) == expected
    await passes(5)
    assert "".join(done) == "cc" + "a" * 3


async def test_coroutines_wait_in_the_same_circle(clock: HandClock) -> None:
    turns = Turns(asyncio.get_running_loop(), clock)
    done: list[str] = []

    async def work(name: str) -> float:
        turn = turns.begin()
        for _ in range(4):
            clock.passes_ms(TURN_MS / 2)
            done.append(name)
            await turn.yield_to_loop()
        return turn.busy_seconds

    tasks = [asyncio.ensure_future(work(name)) for name in "ab"]
    turns.later(Steps(clock, 3, TURN_MS, lambda: done.append("c")))
    busy = await asyncio.gather(*tasks)
    assert "".join(done) == "aabbcaabbcc"
    assert busy == pytest.approx([2 * TURN_MS / 1000] * 2), "without the time that others had"


async def test_work_that_fails_is_given_up_alone(clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    turns = Turns(asyncio.get_running_loop(), clock)
    done: list[str] = []

    def fail() -> None:
        raise ValueError("planted")

    turns.later(Steps(clock, 2, TURN_MS, fail))
    turns.later(Steps(clock, 2, TURN_MS, lambda: done.append("b")))
    await passes(6)
    assert done == ["b", "b"]
    assert ["planted" in str(record.exc_info) for record in caplog.records] == [True]


async def test_at_the_end_work_is_dropped_and_coroutines_go_on_to_where_they_are_cancelled(
    clock: HandClock,
) -> None:
    turns = Turns(asyncio.get_running_loop(), clock)
    done: list[str] = []
    turn = turns.begin()

    async def work() -> None:
        for _ in range(3):
            clock.passes_ms(TURN_MS)
            await turn.yield_to_loop()
            done.append("a")

    task = asyncio.ensure_future(work())
    await passes(1)
    turns.later(Steps(clock, 5, TURN_MS, lambda: done.append("b")))
    turns.close()
    turns.later(Steps(clock, 5, TURN_MS, lambda: done.append("b")))
    await asyncio.wait_for(task, 10)
    assert done == ["a"] * 3
