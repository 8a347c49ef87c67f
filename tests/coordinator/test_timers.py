"""Timers without a clock."""

from random import Random

from mainstem.coordinator.timers import Timers


class _Fired:
    def __init__(self) -> None:
        self.timers = Timers()
        self.fired: list[tuple[str, int]] = []

    def at(self, key: str, deadline_ms: int) -> None:
        self.timers.schedule(key, deadline_ms, lambda now_ms: self.fired.append((key, now_ms)))


def run_due(timers: Timers, now_ms: int) -> None:
    """Run all that are due."""
    while timers.run_next(now_ms):
        pass


def test_they_fire_in_the_order_of_their_deadlines() -> None:
    run = _Fired()
    for key, deadline in (("b", 20), ("a", 10), ("c", 30)):
        run.at(key, deadline)
    assert run.timers.next_deadline() == 10
    run_due(run.timers, 25)
    assert [key for key, _ in run.fired] == ["a", "b"]
    assert run.timers.next_deadline() == 30
    assert "c" in run.timers
    assert "a" not in run.timers


def test_one_that_was_moved_fires_once_at_its_last_deadline() -> None:
    run = _Fired()
    run.at("later", 10)
    run.at("later", 50)
    run.at("earlier", 40)
    run.at("earlier", 20)
    run.at("there and back", 30)
    run.at("there and back", 60)
    run.at("there and back", 25)
    for now_ms in range(0, 100, 5):
        run_due(run.timers, now_ms)
    assert run.fired == [("earlier", 20), ("there and back", 25), ("later", 50)]
    assert run.timers.next_deadline() is None


def test_a_cancelled_one_does_not_fire_and_can_be_set_again() -> None:
    run = _Fired()
    run.at("a", 10)
    run.timers.cancel("a")
    run.timers.cancel("never set")
    assert run.timers.next_deadline() is None
    run.at("a", 30)
    run_due(run.timers, 20)
    assert run.fired == []
    run_due(run.timers, 30)
    assert run.fired == [("a", 30)]


def test_one_that_sets_itself_again_goes_on() -> None:
    timers = Timers()
    fired: list[int] = []

    def tick(now_ms: int) -> None:
        fired.append(now_ms)
        if now_ms < 50:
            timers.schedule("tick", now_ms + 10, tick)

    timers.schedule("tick", 10, tick)
    for now_ms in range(100):
        run_due(timers, now_ms)
    assert fired == [10, 20, 30, 40, 50]


def test_any_history_fires_as_a_plain_table_would() -> None:
    for seed in range(50):
        random = Random(seed)
        run = _Fired()
        table: dict[str, int] = {}
        expected: list[tuple[str, int]] = []
        for now_ms in range(200):
            for _ in range(random.randrange(3)):
                key = random.choice("abcdef")
                if random.random() < 0.2:
                    table.pop(key, None)
                    run.timers.cancel(key)
                else:
                    table[key] = now_ms + random.randrange(40)
                    run.at(key, table[key])
            due = sorted(key for key, deadline in table.items() if deadline <= now_ms)
            expected += [(key, now_ms) for key in due]
            for key in due:
                del table[key]
            before = len(run.fired)
            run_due(run.timers, now_ms)
            run.fired[before:] = sorted(run.fired[before:])
            assert len(run.timers) == len(table)
        assert run.fired == expected, f"seed {seed}"


def test_what_was_cancelled_or_moved_does_not_pile_up() -> None:
    run = _Fired()
    for number in range(10_000):
        run.at("moved", 1_000_000 - number)
        run.at(f"cancelled {number}", 2_000_000)
        run.timers.cancel(f"cancelled {number}")
    assert len(run.timers) == 1
    assert len(run.timers._heap) < 200
    run_due(run.timers, 3_000_000)
    assert run.fired == [("moved", 3_000_000)]
