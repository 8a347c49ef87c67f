"""kill -9 while partitions move between log directories under load: nothing that was acknowledged is lost."""

from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest

from mainstem.protocol.apis.k34_alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from tests.faults.ledger import Ledger, connect
from tests.faults.load import IdempotentWriter, Writer, running
from tests.faults.topic_changes import create_topic
from tests.support.wire import ConnectionClosedError

PARTITIONS = [("wandering", number) for number in range(3)]
SETTINGS = {
    "log.flush.offset.checkpoint.interval.ms": 50,
    "log.initial.task.delay.ms": 0,
    "log.segment.delete.delay.ms": 100,
}
TOPIC_CONFIGS = {"internal.segment.bytes": "200000", "index.interval.bytes": "512"}


class Mover:
    """Sends partitions from one directory to the other without a pause."""

    def __init__(self, dirs: list[Path], seed: int) -> None:
        self._dirs = dirs
        self._random = Random(seed)
        self.accepted = 0

    def live(self, broker: Broker, stop: Event) -> None:
        try:
            with connect(broker) as client:
                while not stop.is_set():
                    topic, index = self._random.choice(PARTITIONS)
                    path = str(self._random.choice(self._dirs))
                    request = AlterReplicaLogDirsRequest(
                        [AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [index])])]
                    )
                    code = client.call(request).results[0].partitions[0].error_code
                    assert code == ErrorCode.NONE, code
                    self.accepted += 1
        except (ConnectionClosedError, OSError):
            pass  # the broker was killed


@pytest.mark.parametrize(
    ("kills", "seed"), [(4, 1), pytest.param(40, 2, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])]
)
def test_what_was_acknowledged_survives_kills_during_moves(tmp_path: Path, kills: int, seed: int) -> None:
    dirs = [tmp_path / "one", tmp_path / "two"]
    random, ledger, mover = Random(seed), Ledger(), Mover(dirs, seed)
    writers: list[Any] = [
        Writer("plain", ledger, PARTITIONS, seed),
        IdempotentWriter("idempotent", ledger, PARTITIONS, seed + 1),
    ]
    with Broker(SETTINGS, data_dir=",".join(map(str, dirs))) as broker:
        with connect(broker) as client:
            create_topic(client, "wandering", len(PARTITIONS), TOPIC_CONFIGS)
        for _ in range(kills):
            with running(broker, ledger, [*(writer.live for writer in writers), mover.live]) as load:
                load.await_acknowledged(random.randrange(200, 3000))
                broker.kill()
            broker.start()
            with connect(broker) as client:
                ledger.check(client)
        with running(broker, ledger, [writer.live for writer in writers]) as load:
            load.await_acknowledged(1)
        with connect(broker) as client:
            assert ledger.check(client) > 0
        assert mover.accepted > 0
        assert broker.log.count("moved wandering-") > kills
        assert "offline" not in broker.log
        assert "Traceback" not in broker.log
