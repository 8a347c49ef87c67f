"""Topics are deleted while their records are on the way to the disk: nobody else notices."""

from threading import Event

from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.testing import Broker
from tests.faults.ledger import Ledger, connect
from tests.faults.load import Writer, running, wait_until
from tests.faults.topic_changes import create_topic, delete_topic, write

SETTINGS = {"flush.messages": "1", "segment.bytes": str(1024 * 1024)}


class _Forgetful(Ledger):
    """Offsets begin anew with every topic of the name: there is nothing to hold against each other."""

    def note(self, where: TopicPartition, offset: int, payloads: list[bytes]) -> None:
        pass


class _Persistent(Writer):
    """Goes on after its topic was deleted: there will be another of that name."""

    expected_errors = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})

    def live(self, broker: Broker, stop: Event) -> None:
        while not stop.is_set():
            super().live(broker, stop)


def test_a_deletion_in_the_middle_of_an_fsync_harms_no_other_topic() -> None:
    ledger = Ledger()
    with Broker() as broker, connect(broker) as client:
        create_topic(client, "stays", 1)
        writers = [_Persistent(f"w{number}", _Forgetful(), [("goes", 0)], number) for number in range(2)]
        with running(broker, ledger, [writer.live for writer in writers]):
            folder = broker.data_dir / "goes-0"
            for number in range(40):
                create_topic(client, "goes", 1, SETTINGS)
                wait_until(lambda: any(path.stat().st_size for path in folder.glob("*.log")), "a batch")
                assert delete_topic(client, "goes") == ErrorCode.NONE
                assert write(client, "stays", b"record:%d" % number) == ErrorCode.NONE, broker.log[-1000:]
        assert "offline" not in broker.log
        assert "Traceback" not in broker.log
