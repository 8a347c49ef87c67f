"""Control records of the metadata log in Kafka's bytes."""

import pytest

from mainstem.cluster.raft.control_records import (
    ControlRecord,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VoterEndpoint,
    VoterEntry,
    VotersRecord,
    control_batch,
    decode_control,
)
from mainstem.protocol.errors import ProtocolError
from mainstem.records.control import ControlType, control_key
from mainstem.records.record import Record, iter_records

DIRECTORY = bytes.fromhex("5c7b9dc5a6b94223b48871d2176559a5")
# Values as Apache Kafka 4.3.0 wrote them.
WRITTEN_BY_KAFKA: list[tuple[ControlRecord, str]] = [
    (LeaderChangeMessage(0, 1, [LeaderVoter(1)], [LeaderVoter(1)]), "00000000000102000000010002000000010000"),
    (SnapshotHeaderRecord(0, 0x1A1E08811A7), "0000000001a1e08811a700"),
    (SnapshotFooterRecord(), "000000"),
    (KRaftVersionRecord(0, 1), "0000000100"),
    (
        VotersRecord(
            0,
            [
                VoterEntry(
                    1, DIRECTORY, [VoterEndpoint("CONTROLLER", "127.0.0.1", 29093)], KRaftVersionFeature(0, 1)
                )
            ],
        ),
        "000002000000015c7b9dc5a6b94223b48871d2176559a5020b434f4e54524f4c4c4552"
        "0a3132372e302e302e3171a50000000001000000",
    ),
]


@pytest.mark.parametrize(("message", "text"), WRITTEN_BY_KAFKA, ids=lambda value: type(value).__name__)
def test_values_are_those_of_kafka(message: ControlRecord, text: str) -> None:
    batch = control_batch([message], base_offset=4, epoch=2, timestamp_ms=9)
    (record,) = iter_records(batch)
    assert record.offset == 4
    assert record.value is not None
    assert record.value.hex() == text
    assert decode_control(record) == message


def test_a_leader_change_of_the_later_version_is_read() -> None:
    value = b"\0\x01" + b"\0\0\0\x05" + b"\x01" + b"\x01" + b"\0"
    record = Record(0, 0, control_key(ControlType.LEADER_CHANGE), value)
    assert decode_control(record) == LeaderChangeMessage(1, 5)


def test_an_unknown_kind_says_nothing() -> None:
    assert decode_control(Record(0, 0, b"\0\0\0\x63", b"")) is None
    assert decode_control(Record(0, 0, None, b"")) is None
    assert decode_control(Record(0, 0, control_key(ControlType.COMMIT), b"")) is None


@pytest.mark.parametrize("value", [b"\0\x07", b"\xff\xff", b"", b"\0\0\0", b"\0\0\0\x01\0\0"])
def test_a_value_that_is_not_understood_is_a_protocol_error(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_control(Record(0, 0, control_key(ControlType.KRAFT_VERSION), value))
