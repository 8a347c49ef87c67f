"""The files on disk: Apache Kafka's own tool reads them, and Mainstem serves what Apache Kafka wrote."""

import re
import shutil
import time
from pathlib import Path
from random import Random

import pytest

from mainstem.testing import Broker
from tests.support.clients import Message, read_confluent, write_confluent, write_kafka_python
from tests.support.kafka_peer import kafka_tool
from tests.support.target import Target

pytestmark = pytest.mark.peer

_SEGMENT_CONFIGS = {"segment.bytes": "1048576", "index.interval.bytes": "1000"}


def _write_in_every_codec(target: Target, topic: str, per_codec: int = 400) -> list[Message]:
    """Enough to fill several segments and index entries."""
    random = Random(1)
    start_ms = int(time.time() * 1000) - 100_000
    messages: list[Message] = []
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        batch = [
            Message(
                f"{codec} {number} {'same ' * 50}{random.randbytes(1000).hex()}".encode(),
                f"key {number}".encode(),
                (("h", b"v"),),
                start_ms + len(messages) + number,
            )
            for number in range(per_codec)
        ]
        messages += write_kafka_python(target, topic, batch, codec=codec, batch_size=20_000)
    return messages


def _dump(*files: Path, options: tuple[str, ...] = ()) -> str:
    names = ",".join(str(file) for file in files)
    return kafka_tool("DumpLogSegments", "--files", names, *options).check()


def test_dump_log_segments_reads_a_partition(target: Target) -> None:
    topic = target.create_topic(configs=_SEGMENT_CONFIGS)
    messages = _write_in_every_codec(target, topic)
    folder = target.log_dir / f"{topic}-0"
    logs = sorted(folder.glob("*.log"))
    assert len(logs) >= 2
    assert logs[0].name == "00000000000000000000.log"

    dumped = _dump(*logs, options=("--deep-iteration", "--print-data-log"))
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", dumped, re.M)]
    assert offsets == list(range(len(messages)))
    assert "isvalid: false" not in dumped
    assert "invalid" not in dumped.replace("isvalid", "").lower()
    codecs = set(re.findall(r"compresscodec: (\w+)", dumped))
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}
    keys = re.findall(r" key: (.*?) payload: (\w+) (\d+) ", dumped)
    assert keys[-1] == ("key 399", "zstd", "399")

    # The active segment's indexes are written when it is rolled or closed; those before it are complete.
    indexes = [path.with_suffix(suffix) for path in logs[:-1] for suffix in (".index", ".timeindex")]
    checked = _dump(*indexes, options=("--index-sanity-check",))
    assert checked.count("passed sanity check.") == len(indexes)
    entries = _dump(*indexes)
    assert len(re.findall(r"^offset: \d+ position: \d+$", entries, re.M)) > 10
    assert len(re.findall(r"^timestamp: \d+ offset: \d+$", entries, re.M)) > 10
    assert "Found" not in entries
    assert "mismatch" not in entries


def test_dump_log_segments_reads_the_metadata_log(target: Target) -> None:
    topic = target.create_topic(partitions=2, configs={"retention.ms": "12345"})
    folder = target.log_dir / "__cluster_metadata-0"
    logs = sorted(folder.glob("*.log"))
    dumped = _dump(*logs, options=("--cluster-metadata-decoder",))
    records = re.findall(r'payload: (\{"type":"(\w+)".*)$', dumped, re.M)
    kinds = {kind for _, kind in records}
    assert {"REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"} <= kinds
    assert sum(f'"name":"{topic}"' in record for record, kind in records if kind == "TOPIC_RECORD") == 1
    (config,) = [record for record, kind in records if kind == "CONFIG_RECORD" and topic in record]
    assert '"name":"retention.ms","value":"12345"' in config
    assert "Error" not in dumped
    assert "isvalid: false" not in dumped


def test_the_checkpoints_and_the_metadata_of_a_directory(target: Target) -> None:
    topic = target.create_topic()
    write_confluent(target, topic, [Message(b"x")])
    metadata = (target.log_dir / f"{topic}-0" / "partition.metadata").read_text()
    assert re.fullmatch(r"version: 0\ntopic_id: [\w-]{22}\n?", metadata)
    epochs = (target.log_dir / f"{topic}-0" / "leader-epoch-checkpoint").read_text()
    assert epochs == "0\n1\n0 0\n"
    properties = dict(
        line.split("=", 1)
        for line in (target.log_dir / "meta.properties").read_text().splitlines()
        if not line.startswith("#")
    )
    assert set(properties) == {"version", "cluster.id", "directory.id", "node.id"}
    assert (properties["version"], properties["node.id"]) == ("1", str(target.node_id))


def test_mainstem_serves_a_partition_that_kafka_wrote(kafka: Target, tmp_path: Path) -> None:
    source = kafka.create_topic(configs=_SEGMENT_CONFIGS)
    messages = _write_in_every_codec(kafka, source)
    with Broker(data_dir=tmp_path / "data") as broker:
        target = Target("mainstem", broker.bootstrap_servers, broker.data_dir)
        topic = target.create_topic(source, configs=_SEGMENT_CONFIGS)
        broker.stop()
        folder = broker.data_dir / f"{topic}-0"
        for path in folder.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in (kafka.log_dir / f"{source}-0").iterdir():
            if path.name != "partition.metadata":
                shutil.copy(path, folder)
        broker.start()
        read = read_confluent(target, topic, len(messages))
        assert read == messages
        assert [message.offset for message in read] == list(range(len(messages)))
        assert read_confluent(target, topic, 5, offset=1234) == messages[1234:1239]
        (written,) = write_confluent(target, topic, [Message(b"next", timestamp_ms=int(time.time() * 1000))])
        assert written.offset == len(messages)
