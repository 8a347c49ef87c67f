"""kill -9 in the middle of a load: what was acknowledged is there, where it was acknowledged, once."""

from random import Random

import pytest

from mainstem.testing import Broker
from tests.faults.ledger import Ledger, connect
from tests.faults.load import IdempotentWriter, Writer, running
from tests.faults.topic_changes import TopicChanger, create_topic

PARTITIONS = [("steady", number) for number in range(3)]
SETTINGS = {"log.flush.offset.checkpoint.interval.ms": 50, "log.initial.task.delay.ms": 0}
# So small that a life of a broker sees several segments.
TOPIC_CONFIGS = {"segment.bytes": str(1024 * 1024), "index.interval.bytes": "512"}


def kill_often(broker: Broker, kills: int, seed: int) -> tuple[int, int]:
    """Returns how many records and how many changes of topics were acknowledged, all found again."""
    random = Random(seed)
    ledger = Ledger()
    with connect(broker) as client:
        create_topic(client, "steady", len(PARTITIONS), TOPIC_CONFIGS)
    changer = TopicChanger(ledger, seed)
    writers = [
        Writer("plain", ledger, PARTITIONS, seed),
        IdempotentWriter("idempotent", ledger, PARTITIONS, seed + 1),
    ]
    for _ in range(kills):
        with running(broker, ledger, [*(writer.live for writer in writers), changer.live]) as load:
            load.await_acknowledged(random.randrange(2500))
            broker.kill()
        broker.start()
        with connect(broker) as client:
            ledger.check(client)
            changer.check(client, broker)
    with running(broker, ledger, [writer.live for writer in writers]) as load:
        load.await_acknowledged(1)
    with connect(broker) as client:
        return ledger.check(client), changer.acknowledged


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_what_was_acknowledged_survives_kills(seed: int) -> None:
    with Broker(SETTINGS) as broker:
        records, changes = kill_often(broker, kills=4, seed=seed)
        assert records
        assert "Traceback" not in broker.log


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_what_was_acknowledged_survives_a_hundred_kills(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(SETTINGS) as broker:
        records, changes = kill_often(broker, kills=100, seed=100)
        assert "Traceback" not in broker.log
    with capsys.disabled():
        print(f"\n100 kills: {records} records and {changes} changes of topics acknowledged, none lost")
