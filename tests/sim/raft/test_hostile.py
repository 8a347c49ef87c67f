"""Whatever other nodes say, a node of the quorum goes on: messages with wrong numbers, names and records, as
questions and as answers. What such a quorum decides is worth nothing; that no node ends of it is checked.
"""

import random
from typing import Any

import msgspec
import pytest

from mainstem.cluster.raft import serving
from mainstem.cluster.raft.messages import Request, Response
from mainstem.protocol.apis.k01_fetch import EpochEndOffset, SnapshotId
from mainstem.protocol.errors import ProtocolError
from tests.sim.raft.checks import Checker
from tests.sim.raft.storm import Storm
from tests.sim.raft.world import World
from tests.sim.seeds import SEED, simulate_all, soaked

STORM_MS = 5000
SEEDS_PER_TEST = 5
NUMBERS = (-(2**31), -2, -1, 0, 1, 2, 3, 5, 10, 20, 2**30)


class Believing(Checker):
    """Checks nothing."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return (lambda *_: None) if callable(found) and not name.startswith("_") else found


class HostileWorld(World):
    def __init__(self, seed: int) -> None:
        rng = random.Random(~seed)
        super().__init__(seed, voters=rng.choice((1, 3)), observers=1, dynamic=rng.random() < 0.5)
        self.checker = Believing(self)
        self.encoded = True  # so that nobody else has the message
        self.hostility = rng.choice((0.02, 0.2))

    def over_the_wire(self, message: Request | Response) -> tuple[Any, int]:
        read, version = super().over_the_wire(message)
        if self.random.random() >= self.hostility:
            return read, version
        self._spoil(read)
        try:
            return super().over_the_wire(read)
        except ProtocolError:  # no message says that
            return super().over_the_wire(message)

    def _spoil(self, message: Any) -> None:
        """Change a field somewhere within."""
        for field in self.random.sample(message.__struct_fields__, len(message.__struct_fields__)):
            value = getattr(message, field)
            if value is None and field not in ("diverging_epoch", "snapshot_id"):
                continue
            if isinstance(value, list) and value and self.random.random() < 0.9:
                inner = self.random.choice(value)
                if isinstance(inner, msgspec.Struct):
                    self._spoil(inner)
                    return
            if (spoiled := self._spoiled(field, value)) is not None:
                msgspec.structs.force_setattr(message, field, spoiled)
                return

    def _spoiled(self, field: str, value: Any) -> Any:
        match value:
            case bool():
                return not value
            case int():
                return self.random.choice((*NUMBERS, value + 1, value - 1))
            case str():
                return self.random.choice(("", "another"))
            case bytes() | memoryview() if len(value):
                damaged = bytearray(value)
                damaged[self.random.randrange(len(damaged))] ^= 1 << self.random.randrange(8)
                return bytes(damaged[: self.random.randint(0, len(damaged))])
            case list():
                return [] if value else None
            case None:
                kind = EpochEndOffset if field == "diverging_epoch" else SnapshotId
                return kind(self.random.choice(NUMBERS), self.random.choice(NUMBERS))
            case msgspec.Struct():
                copy = msgspec.structs.replace(value)
                self._spoil(copy)
                return copy
        return None


def simulate(seed: int) -> None:
    world = HostileWorld(seed)
    world.start()
    Storm(world).run(STORM_MS)


@pytest.mark.parametrize("group", soaked(range(100), 4))
def test_no_node_ends_of_what_others_say(group: int) -> None:
    first = SEED * 1000 + group * SEEDS_PER_TEST
    simulate_all(simulate, range(first, first + SEEDS_PER_TEST))


def test_a_node_that_believes_everything_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_send_elsewhere", lambda replica, asked, wanted: None)
    with pytest.raises(AssertionError, match="seed"):
        simulate_all(simulate, range(100))
