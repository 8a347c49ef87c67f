"""The controller under random histories of brokers that come, die and lead: nobody leads who may lack
something, epochs never go back, and what it looks up is what a scan would find.
"""

from typing import Any

import pytest

from mainstem.cluster.controller import alter_partition, registration
from mainstem.cluster.controller.elections import withdrawn
from mainstem.cluster.controller.partition_change import PartitionChange
from mainstem.cluster.controller.partition_index import PartitionIndex
from mainstem.cluster.image import MetadataImage
from tests.sim.controller_world import ControllerWorld
from tests.sim.seeds import SEED, Breakage, assert_found_out, simulate_all, soaked

STEPS = 150


def simulate(seed: int) -> None:
    world = ControllerWorld(seed)
    for _ in range(STEPS):
        world.act()
    world.check_replay()
    world.settle()
    world.check_calm()


@pytest.mark.parametrize("block", soaked(range(10), by_default=2))
def test_every_history_keeps_the_rules(block: int) -> None:
    simulate_all(simulate, range(1000 * SEED + 30 * block, 1000 * SEED + 30 * (block + 1)))


def _undamaged(*args: Any, damaged: bool) -> Any:
    return withdrawn(*args, damaged=False)


def _not_followed(index: PartitionIndex, _records: Any, image: MetadataImage) -> None:
    index._topics = image.topics_by_id


BREAKAGES = {
    "somebody leads who is there": Breakage(
        PartitionChange,
        "_is_eligible",
        PartitionChange._is_available,
        "without having all|not in sync",
    ),
    "an incarnation is taken for another": Breakage(
        alter_partition, "_is_eligible", lambda *_: True, "without having all"
    ),
    "a broker that lost power stays eligible": Breakage(
        registration, "withdrawn", _undamaged, "without having all"
    ),
    "the index does not follow": Breakage(PartitionIndex, "follow", _not_followed, "the index is wrong"),
}


@pytest.mark.parametrize("breakage", BREAKAGES.values(), ids=list(BREAKAGES))
def test_a_broken_controller_is_found_out(breakage: Breakage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_found_out(monkeypatch, breakage, simulate, 200)
