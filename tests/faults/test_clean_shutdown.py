"""SIGTERM in the middle of a load: nothing acknowledged is lost, and the next start scans nothing."""

import os
from pathlib import Path

import pytest

from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from tests.faults.ledger import Ledger, connect
from tests.faults.load import IdempotentWriter, Writer, running
from tests.faults.topic_changes import create_topic, write
from tests.support.scenario import fetch_request

PARTITIONS = [("t", number) for number in range(3)]
_FETCH_BY_NAME = 12


@pytest.mark.parametrize("flush_messages", ["1", "9223372036854775807"])
def test_what_was_acknowledged_survives_a_shutdown(tmp_path: Path, flush_messages: str) -> None:
    ledger = Ledger()
    with Broker(data_dir=tmp_path / "data") as broker:
        with connect(broker) as client:
            create_topic(client, "t", len(PARTITIONS), {"flush.messages": flush_messages})
        for life in range(3):
            writers = [
                Writer(f"plain-{life}", ledger, PARTITIONS, life),
                IdempotentWriter(f"idempotent-{life}", ledger, PARTITIONS, life),
            ]
            with running(broker, ledger, [writer.live for writer in writers]) as load:
                load.await_acknowledged(200)
                assert broker.stop() == 0
            assert (broker.data_dir / ".kafka_cleanshutdown").exists()
            broker.start()
            assert not (broker.data_dir / ".kafka_cleanshutdown").exists()
            with connect(broker) as client:
                assert ledger.check(client)
        for line in ("Traceback", "cutting", "rebuilding", " ERROR "):
            assert line not in broker.log


def test_the_start_after_a_clean_stop_scans_nothing(tmp_path: Path) -> None:
    """A scan would find the damaged batch and cut it off; after a crash it does."""
    with Broker(data_dir=tmp_path / "data") as broker:
        with connect(broker) as client:
            create_topic(client, "t", 1)
            for number in range(10):
                assert write(client, "t", b"record:%d" % number) == ErrorCode.NONE
        broker.stop()
        segment = broker.data_dir / "t-0" / f"{0:020d}.log"
        data = segment.read_bytes()
        with segment.open("r+b") as file:
            os.pwrite(file.fileno(), b"R", data.index(b"record:5"))
        broker.start()
        assert _high_watermark(broker) == 10
        broker.kill()
        broker.start()
        assert _high_watermark(broker) == 5
        assert f"off {segment}" in broker.log


def _high_watermark(broker: Broker) -> int:
    with connect(broker) as client:
        (answer,) = client.call(fetch_request("t", 0), _FETCH_BY_NAME).responses[0].partitions
    high_watermark: int = answer.high_watermark
    return high_watermark
