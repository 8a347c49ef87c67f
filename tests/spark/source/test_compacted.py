"""A topic with holes, as compaction leaves them: both connectors read the same rows from it."""

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, Row, SparkSession

from mainstem.storage.files.checkpoints import CLEANER_OFFSETS, read_offsets
from mainstem.storage.files.real_files import RealFiles
from mainstem.testing import Broker

pytestmark = [pytest.mark.peer, pytest.mark.timeout(400)]

_SETTINGS = {"log.cleaner.backoff.ms": 50, "log.cleaner.min.cleanable.ratio": 0.01}
_CONFIGS = {"cleanup.policy": "compact", "internal.segment.bytes": "20000"}
_SECONDS_MAX = 200


def _write(servers: str) -> None:
    """Keys that come again and again, some deleted, in transactions of both outcomes."""
    settings = {"bootstrap.servers": servers, "compression.type": "zstd", "batch.size": 4000}
    producer = Producer({**settings, "transactional.id": "writer"})
    producer.init_transactions(30)
    for round_number in range(60):
        producer.begin_transaction()
        for number in range(40):
            key = b"key %d" % (number * 7919 % (40 + 5 * round_number))
            value = None if number % 10 == 9 else b"%d in %d, " % (number, round_number) * 10
            producer.produce("prices", value, key, partition=0)
        if round_number % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def _await_clean(folder: Path) -> int:
    """Up to where the topic is clean, which is where its active segment begins."""
    deadline = time.monotonic() + _SECONDS_MAX
    while True:
        active = max(int(path.stem) for path in (folder / "prices-0").glob("*.log"))
        if read_offsets(RealFiles(), folder / CLEANER_OFFSETS).get(("prices", 0)) == active:
            return active
        assert time.monotonic() < deadline, "the topic was not cleaned"
        time.sleep(0.05)


def _read(spark: SparkSession, servers: str, form: str, **options: str) -> DataFrame:
    reader = spark.read.format(form).option("kafka.bootstrap.servers", servers)
    return reader.options(subscribe="prices", **options).load()


def _rows(frame: DataFrame) -> list[Row]:
    return frame.orderBy("offset").collect()


def test_both_connectors_read_the_same_rows_of_a_compacted_topic(spark: SparkSession, tmp_path: Path) -> None:
    with Broker(_SETTINGS, data_dir=tmp_path / "data") as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("prices", 1, 1, config=_CONFIGS)])["prices"].result(30)
        _write(servers)
        clean = _await_clean(broker.data_dir)
        for level in ("read_committed", "read_uncommitted"):
            options = {"kafka.isolation.level": level}
            ours, theirs = (_rows(_read(spark, servers, form, **options)) for form in ("mainstem", "kafka"))
            assert ours == theirs
            offsets = [row.offset for row in ours]
            assert len([offset for offset in offsets if offset < clean]) < clean / 2
        holes = [offset for offset in range(offsets[0], clean) if offset not in set(offsets)]
        ranges = {"startingOffsets": holes[0], "endingOffsets": holes[-1]}
        options = {name: json.dumps({"prices": {"0": offset}}) for name, offset in ranges.items()}
        ours, theirs = (_rows(_read(spark, servers, form, **options)) for form in ("mainstem", "kafka"))
        assert ours == theirs
        assert ours
