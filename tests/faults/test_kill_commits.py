"""kill -9 in the middle of commits: an acknowledged commit is found again, and none moves back."""

from random import Random

import pytest

from mainstem.testing import Broker
from tests.faults.committer import Committer
from tests.faults.ledger import Ledger, connect
from tests.faults.load import running, wait_until
from tests.faults.topic_changes import create_topic

_PARTITIONS = 6


def _kill_often(broker: Broker, kills: int, seed: int) -> int:
    """Returns how many commits of a partition were acknowledged."""
    random = Random(seed)
    with connect(broker) as client:
        create_topic(client, "read", _PARTITIONS, {})
    committers = [Committer(f"reader{number}", "read", _PARTITIONS, seed + number) for number in range(3)]
    for _ in range(kills):
        before = sum(committer.count for committer in committers)
        wanted = before + random.randrange(1, 1500)
        with running(broker, Ledger(), [committer.live for committer in committers]):
            wait_until(lambda: sum(c.count for c in committers) >= wanted, "commits")  # noqa: B023
            broker.kill()
        broker.start()
        with connect(broker) as client:
            for committer in committers:
                committer.check(client)
    return sum(committer.count for committer in committers)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_acknowledged_commits_survive_kills(seed: int) -> None:
    with Broker() as broker:
        assert _kill_often(broker, kills=4, seed=seed)
        assert "Traceback" not in broker.log


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_acknowledged_commits_survive_a_hundred_kills(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        commits = _kill_often(broker, kills=100, seed=100)
        assert "Traceback" not in broker.log
    with capsys.disabled():
        print(f"\n100 kills: {commits} commits acknowledged, none lost")
