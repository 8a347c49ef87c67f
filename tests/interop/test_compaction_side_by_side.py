"""The same log cleaned by Apache Kafka and by Mainstem, three times over: the same files come out, byte by
byte where no codec is involved. Apache Kafka's own tool reads Mainstem's segments.
"""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec, ResourceType

from mainstem.records.batch import DELETE_HORIZON_MASK, BatchHeader, iter_headers
from mainstem.records.record import Record, iter_records
from mainstem.storage.files.checkpoints import CLEANER_OFFSETS, read_offsets
from mainstem.storage.files.real_files import RealFiles
from tests.storage.cleaner.cleaning_helpers import clean
from tests.storage.log_helpers import open_log
from tests.support.kafka_peer import end_own_kafka, kafka_tool, start_own_kafka
from tests.support.target import Target, when_settled

pytestmark = pytest.mark.peer

_TIMEOUT_SECONDS = 30
_RETENTION_MS = 1000
_SEGMENT_BYTES = 20_000
_CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": str(_SEGMENT_BYTES),
    "min.cleanable.dirty.ratio": "1.0",
    "delete.retention.ms": str(_RETENTION_MS),
}


@pytest.fixture(scope="module")
def cleaning_kafka() -> Iterator[Target]:
    """Apache Kafka, looking for something to clean ten times a second."""
    peer = start_own_kafka({"log.cleaner.backoff.ms": "100", "log.cleaner.io.buffer.size": "524288"})
    yield Target("kafka", peer.bootstrap_servers, Path(peer.log_dir))
    end_own_kafka(peer, kindly=False)


class Writer:
    """Puts keys, tombstones and transactions into a topic."""

    def __init__(self, target: Target, topic: str, codec: str) -> None:
        self._random = Random(7)
        self._topic = topic
        self._count = 0
        settings = {"bootstrap.servers": target.bootstrap_servers, "compression.type": codec, "linger.ms": 1}
        self._plain = Producer({**settings, "enable.idempotence": True})
        self._transactional = [
            Producer({**settings, "transactional.id": f"{topic}-{number}"}) for number in range(2)
        ]
        for producer in self._transactional:
            producer.init_transactions(_TIMEOUT_SECONDS)

    def write(self, rounds: int) -> None:
        for number in range(rounds):
            self._send(self._plain, 30)
            for producer in self._transactional:
                producer.begin_transaction()
            for _ in range(3):
                for producer in self._transactional:
                    self._send(producer, 4)
            for index, producer in enumerate(self._transactional):
                if (number + index) % 3:
                    producer.commit_transaction(_TIMEOUT_SECONDS)
                else:
                    producer.abort_transaction(_TIMEOUT_SECONDS)
        self._send(self._plain, 30)

    def _send(self, producer: Producer, count: int) -> None:
        for _ in range(count):
            self._count += 1
            key = b"key %d" % int(self._random.paretovariate(0.5))
            value = (
                None
                if self._random.random() < 0.1
                else b"value %d " % self._count + self._random.randbytes(40)
            )
            producer.produce(self._topic, key=key[:12], value=value, partition=0)
        assert producer.flush(_TIMEOUT_SECONDS) == 0


def _await_markers(target: Target, topic: str) -> None:
    """A commit is acknowledged before its markers are in the log."""
    admin, partition = target.admin(), TopicPartition(topic, 0)

    def end(isolation: IsolationLevel) -> int:
        (answer,) = admin.list_offsets({partition: OffsetSpec.latest()}, isolation_level=isolation).values()
        return answer.result(_TIMEOUT_SECONDS).offset

    committed, uncommitted = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
    when_settled(lambda: end(committed) == end(uncommitted), bool)


def _set_ratio(target: Target, topic: str, ratio: str) -> None:
    entry = ConfigEntry("min.cleanable.dirty.ratio", ratio, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = target.admin()
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(_TIMEOUT_SECONDS)


def _let_clean(target: Target, topic: str) -> None:
    """Have Apache Kafka clean the topic once, up to its active segment."""
    active = max(int(path.stem) for path in (target.log_dir / f"{topic}-0").glob("*.log"))
    _set_ratio(target, topic, "0.0")
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while read_offsets(RealFiles(), target.log_dir / CLEANER_OFFSETS).get((topic, 0)) != active:
        assert time.monotonic() < deadline, "Apache Kafka has not cleaned the topic"
        time.sleep(0.05)
    _set_ratio(target, topic, "1.0")


def _contents(folder: Path) -> dict[str, bytes]:
    """The files of all segments but the active one; an empty transaction index is as good as none."""
    active = max(path.stem for path in folder.glob("*.log"))
    return {
        path.name: path.read_bytes()
        for suffix in ("log", "index", "timeindex", "txnindex")
        for path in sorted(folder.glob(f"*.{suffix}"))
        if path.stem != active and (suffix != "txnindex" or path.stat().st_size)
    }


def _horizons(contents: dict[str, bytes]) -> set[int]:
    logs = [data for name, data in contents.items() if name.endswith(".log")]
    headers = [header for data in logs for _, header in iter_headers(data)]
    return {header.base_timestamp for header in headers if header.attributes & DELETE_HORIZON_MASK}


def _decoded(contents: dict[str, bytes]) -> dict[str, object]:
    """The same without what depends on how a codec was written."""
    decoded: dict[str, object] = {}
    for name, data in contents.items():
        if name.endswith(".log"):
            batches: list[tuple[BatchHeader, list[Record]]] = []
            for at, header in iter_headers(data):
                records = list(iter_records(data[at : at + header.size]))
                batches.append((header._replace(batch_length=0, crc=0), records))
            decoded[name] = batches
        elif name.endswith(".txnindex"):
            decoded[name] = data
    return decoded


def _differences(ours: dict[str, object], kafkas: dict[str, object]) -> list[object]:
    """Name and content of what is not the same, batch by batch."""
    differences: list[object] = [(name,) for name in ours.keys() ^ kafkas.keys()]
    for name in ours.keys() & kafkas.keys():
        one, other = ours[name], kafkas[name]
        if isinstance(one, list) and isinstance(other, list):
            differences += [(name, batch) for batch in one if batch not in other]
            differences += [(name, "kafka", batch) for batch in other if batch not in one]
        elif one != other:
            differences.append((name, one, other))
    return differences


def _cleaned_by_mainstem(folder: Path, checkpoint: int | None, now_ms: int) -> dict[str, bytes]:
    active = max((folder / "t-0").glob("*.log"))
    *_, (_, last) = iter_headers(active.read_bytes())
    log = open_log(
        folder,
        clean=True,  # no index is made anew: Kafka has not done that either
        recovery_point=last.next_offset,
        cleanup_policy=frozenset({"compact"}),
        segment_bytes=_SEGMENT_BYTES,
        delete_retention_ms=_RETENTION_MS,
    )
    clean(log, checkpoint, now_ms=now_ms)
    log.close()
    return _contents(Path(log.directory))


def _check_with_kafkas_tool(folder: Path) -> None:
    names = ",".join(str(path) for path in sorted(folder.glob("*.log")))
    dumped = kafka_tool("DumpLogSegments", "--files", names, "--deep-iteration").check()
    assert "isvalid: false" not in dumped
    indexes = [folder / name for name in _contents(folder) if name.endswith((".index", ".timeindex"))]
    checked = kafka_tool(
        "DumpLogSegments", "--files", ",".join(map(str, indexes)), "--index-sanity-check"
    ).check()
    assert len(re.findall(r"passed sanity check|is empty", checked)) == len(indexes)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_both_leave_the_same_of_a_log(cleaning_kafka: Target, tmp_path: Path, codec: str) -> None:
    kafka = cleaning_kafka
    topic = kafka.create_topic(configs=_CONFIGS)
    kafkas = kafka.log_dir / f"{topic}-0"
    writer = Writer(kafka, topic, codec)
    for number in range(3):
        writer.write(12)
        _await_markers(kafka, topic)
        ours = tmp_path / str(number)
        shutil.copytree(kafkas, ours / "t-0", ignore=shutil.ignore_patterns("*.deleted"))
        before = _contents(ours / "t-0")
        checkpoint = read_offsets(RealFiles(), kafka.log_dir / CLEANER_OFFSETS).get((topic, 0))
        # Until what was marked last time may go.
        while time.time() * 1000 <= max(_horizons(before), default=0):
            time.sleep(0.05)
        _let_clean(kafka, topic)
        by_kafka = _contents(kafkas)
        (horizon,) = _horizons(by_kafka) - _horizons(before)
        by_mainstem = _cleaned_by_mainstem(ours, checkpoint, horizon - _RETENTION_MS)
        assert _differences(_decoded(by_mainstem), _decoded(by_kafka)) == []
        if codec == "none":
            assert by_mainstem == by_kafka
        assert sum(map(len, by_kafka.values())) < sum(map(len, before.values())) * 0.8
    if codec == "none":
        assert any(name.endswith(".txnindex") for name in before)
    _check_with_kafkas_tool(ours / "t-0")
