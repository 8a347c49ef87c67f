"""`mainstem dump-log` on files made by the storage layer's own code, whole and damaged."""

import json
import random
import struct
import subprocess
from pathlib import Path

import pytest

from mainstem.cluster.records import FeatureLevelRecord
from mainstem.cluster.records.framing import encode_record
from mainstem.records.batch import read_header
from mainstem.records.compression import Codec
from mainstem.records.control import ControlType
from mainstem.records.record import Record, build_batch
from mainstem.storage.files.checkpoints import RECOVERY_POINTS, write_offsets, write_partition_metadata
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.producers.producer_state import ProducerState, write_snapshot
from mainstem.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY
from tests.cli.command import run_command
from tests.support.control_batches import build_control_batch, end_txn_value

TIME_MS = 1_800_000_000_000
SEGMENT_SUFFIXES = (".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")


def dump(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_command("dump-log", *map(str, arguments))


def entries(*arguments: object) -> list[dict[str, object]]:
    done = dump("--json", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A partition's first segment: two batches of data and a transaction marker."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first = build_batch(
        [Record(0, TIME_MS, b"k", b"v", [("h", b"1")]), Record(0, TIME_MS + 1, None, b"\xff")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    )
    second = build_batch(
        [Record(0, TIME_MS + 2, b"k", None)], base_offset=2, compression=Codec.GZIP, leader_epoch=3
    )
    marker = build_control_batch(
        ControlType.COMMIT,
        end_txn_value(0),
        base_offset=3,
        timestamp_ms=TIME_MS,
        producer_id=7,
        producer_epoch=0,
    )
    path = folder / "00000000000000000000.log"
    path.write_bytes(first + second + marker)
    return path


def test_batches_and_records_are_shown(segment: Path) -> None:
    found = entries(segment)
    assert [entry["type"] for entry in found] == [
        "batch",
        "record",
        "record",
        "batch",
        "record",
        "batch",
        "record",
    ]
    batch, first, second, gzipped, tombstone, _, marker = found
    assert (batch["base_offset"], batch["last_offset"], batch["count"]) == (0, 1, 2)
    assert (batch["producer_id"], batch["base_sequence"], batch["last_sequence"]) == (7, 0, 1)
    assert (first["offset"], first["timestamp"], first["key"], first["value"]) == (0, TIME_MS, "k", "v")
    assert first["headers"] == [{"name": "h", "value": "1"}]
    assert (second["key"], second["value_base64"]) == (None, "/w==")
    assert (gzipped["compression"], gzipped["leader_epoch"]) == ("gzip", 3)
    assert tombstone["value"] is None
    assert marker["control"] == "COMMIT"


def test_text_names_the_same_things(segment: Path) -> None:
    lines = dump(segment).stdout.splitlines()
    assert lines[0] == str(segment)
    assert lines[1].startswith("  batch 0..1, 2 records, ")
    assert "producer 7 epoch 0 sequence 0..1" in lines[1]
    assert lines[2].endswith('key=k  value=v  headers=[{"name": "h", "value": "1"}]')
    assert dump("--batches", segment).stdout.count("\n") == 4


def test_damage_is_named_with_its_place_and_ends_with_an_error(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    second = read_header(data).size
    data[second + 70] ^= 1
    segment.write_bytes(data[:-3])
    done = dump(segment)
    assert done.returncode == 1
    assert f"DAMAGED at {second}: the checksum of the batch is wrong" in done.stdout
    assert "a batch that says it has" in done.stdout
    assert "2 damaged places found" in done.stderr
    assert "Traceback" not in done.stderr


def test_zeros_at_the_end_are_no_damage(segment: Path) -> None:
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.truncate(size + 4096)
    assert entries(segment)[-1] == {"file": str(segment), "type": "unused", "position": size, "bytes": 4096}


def test_the_small_files_of_a_folder(segment: Path) -> None:
    folder = segment.parent
    (folder / "00000000000000000100.index").write_bytes(OFFSET_ENTRY.pack(5, 4096) + bytes(16))
    (folder / "00000000000000000100.timeindex").write_bytes(TIME_ENTRY.pack(TIME_MS, 5))
    state = ProducerState()
    state.record(read_header(segment.read_bytes()))
    write_snapshot(RealFiles(), str(folder), 2, state)
    write_partition_metadata(RealFiles(), folder, bytes(range(16)))
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n3 2\n")
    by_type = {str(entry["type"]): entry for entry in entries(folder)}
    assert (by_type["index"]["offset"], by_type["index"]["position"]) == (105, 4096)
    assert (by_type["timeindex"]["offset"], by_type["timeindex"]["timestamp"]) == (105, TIME_MS)
    assert (by_type["producer"]["producer_id"], by_type["producer"]["last_sequence"]) == (7, 1)
    assert (by_type["epoch"]["leader_epoch"], by_type["epoch"]["start_offset"]) == (3, 2)
    assert by_type["text"]["text"] == "topic_id: AAECAwQFBgcICQoLDA0ODw"


def test_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / RECOVERY_POINTS
    write_offsets(RealFiles(), path, {("orders", 3): 42})
    assert entries(path) == [
        {"file": str(path), "type": "checkpoint", "topic": "orders", "partition": 3, "offset": 42}
    ]
    path.write_text("0\n9\norders 3 42\n")
    assert dump(path).returncode == 1


def test_metadata_records_are_decoded(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    value = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=30))
    log = folder / "00000000000000000000.log"
    log.write_bytes(build_batch([Record(0, TIME_MS, None, value), Record(0, TIME_MS, None, b"\x01\x7f\x00")]))
    _, known, unknown = entries(log)
    assert known["record"] == "FeatureLevelRecord"
    assert known["fields"] == {"name": "metadata.version", "feature_level": 30}
    assert unknown["value"] == "017f00"


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "absent.log"):
        done = dump(path)
        assert done.returncode == 1
        assert str(path) in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".index", OFFSET_ENTRY.pack(5, 4096) + OFFSET_ENTRY.pack(4, 8192)),
        (".index", OFFSET_ENTRY.pack(5, 4096) + OFFSET_ENTRY.pack(6, 0)),
        (".index", OFFSET_ENTRY.pack(-1, 4096)),
        (".index", OFFSET_ENTRY.pack(5, 4096) + bytes(8) + OFFSET_ENTRY.pack(6, 8192)),
        (".index", b"123"),
        (".timeindex", TIME_ENTRY.pack(TIME_MS, 5) + TIME_ENTRY.pack(TIME_MS - 1, 6)),
        (".timeindex", TIME_ENTRY.pack(TIME_MS, -5)),
        (".txnindex", struct.pack(">hqqqq", 0, 7, 20, 10, 30)),
        (".txnindex", struct.pack(">hqqqq", 1, 7, 10, 20, 30)),
        (".snapshot", b"no snapshot"),
        (".checkpoint", b"no batch"),
        ("recovery-point-offset-checkpoint", b"0\n1\norders x 3\n"),
        ("leader-epoch-checkpoint", b"0\n1\n5 9 9\n"),
        ("leader-epoch-checkpoint", b"\xff\xfe"),
        ("partition.metadata", b"some words\n"),
        ("meta.properties", b"some words\n"),
        ("quorum-state", b"{"),
        (".kafka_cleanshutdown", b"{"),
    ],
)
def test_garbage_in_a_small_file_is_damage(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / (f"{100:020}{name}" if name in SEGMENT_SUFFIXES else name)
    path.write_bytes(content)
    done = dump(path)
    assert done.returncode == 1
    assert "DAMAGED at 0: " in done.stdout
    assert "1 damaged place found" in done.stderr


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot", ".log", ".checkpoint"])
@pytest.mark.parametrize("seed", range(5))
def test_random_bytes_are_damage(tmp_path: Path, suffix: str, seed: int) -> None:
    path = tmp_path / f"{0:020}{suffix}"
    path.write_bytes(random.Random(seed).randbytes(8 * 12 * 34))
    done = dump(path)
    assert done.returncode == 1
    assert "DAMAGED" in done.stdout


def test_a_time_beyond_every_calendar_is_shown_as_a_number(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.timeindex"
    path.write_bytes(TIME_ENTRY.pack(2**62, 5))
    assert f"timestamp {2**62} ms" in dump(path).stdout
