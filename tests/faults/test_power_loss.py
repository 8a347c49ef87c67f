"""The power fails: with flush.messages=1, what was acknowledged is on disk; so is every change of topics."""

import os
import signal
from pathlib import Path
from random import Random

import pytest

from mainstem.testing import Broker
from tests.faults.filesystems import PowerFailingDisk
from tests.faults.ledger import Ledger, connect
from tests.faults.load import IdempotentWriter, Writer, running, wait_until
from tests.faults.topic_changes import TopicChanger, create_topic

PARTITIONS = [("durable", number) for number in range(2)]
TOPIC_CONFIGS = {"flush.messages": "1", "segment.bytes": str(1024 * 1024)}


def _freeze(broker: Broker) -> None:
    """Stop the process where it stands, system calls that are under way completed."""
    os.kill(broker.pid, signal.SIGSTOP)
    tasks = list(Path(f"/proc/{broker.pid}/task").iterdir())
    wait_until(lambda: all(_is_stopped(task) for task in tasks), "a process that stands still")


def _is_stopped(task: Path) -> bool:
    return (task / "stat").read_text().rpartition(") ")[2].startswith("T")


def lose_power_often(tmp_path: Path, losses: int, seed: int) -> tuple[int, int]:
    """Returns how many records and how many changes of topics were acknowledged, all found again."""
    random = Random(seed)
    ledger = Ledger()
    changer = TopicChanger(ledger, seed, flush_each=True)
    writers = [Writer("plain", ledger, PARTITIONS, seed), IdempotentWriter("again", ledger, PARTITIONS, seed)]
    with (
        PowerFailingDisk(tmp_path / "disk", tmp_path / "image") as disk,
        Broker({"log.flush.offset.checkpoint.interval.ms": 50}, data_dir=disk.path / "data") as broker,
    ):
        with connect(broker) as client:
            create_topic(client, "durable", len(PARTITIONS), TOPIC_CONFIGS)
        for _ in range(losses):
            with running(broker, ledger, [*(writer.live for writer in writers), changer.live]) as load:
                load.await_acknowledged(random.randrange(400))
                _freeze(broker)
                disk.cut_power()
                broker.kill()
            disk.come_back()
            broker.start()
            with connect(broker) as client:
                records = ledger.check(client)
                changer.check(client, broker)
        assert "Traceback" not in broker.log
        broker.stop()
    return records, changer.acknowledged


def test_what_was_acknowledged_survives_a_loss_of_power(tmp_path: Path) -> None:
    records, _ = lose_power_often(tmp_path, losses=4, seed=1)
    assert records


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_what_was_acknowledged_survives_fifty_losses_of_power(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, changes = lose_power_often(tmp_path, losses=50, seed=50)
    with capsys.disabled():
        print(f"\n50 losses of power: {records} records and {changes} changes acknowledged, none lost")
