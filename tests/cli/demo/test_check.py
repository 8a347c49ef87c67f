"""The demo believes nothing: what came out is compared with what went in, record by record."""

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mainstem.cli.demo.check import DEAD_LETTERS_TOPIC, PAID_TOPIC, TABLE, check, table_rows
from mainstem.cli.demo.stream import Expected
from mainstem.testing import Broker

EXPECTED = Expected(paid={1, 2}, paid_too_late={3}, unpaid={4}, bad={b"{bad": "orders"})
RIGHT = [(1, True), (2, True), (3, False), (4, False)]


def _write_table(folder: Path, rows: list[tuple[int, bool]]) -> None:
    """As Spark's streams do: a file, and a log that names it; a file of a failed try is not named."""
    (folder / "_spark_metadata").mkdir(parents=True)
    at = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "order_id": pa.array([number for number, _ in rows], pa.int64()),
            "paid_at": pa.array([at if paid else None for _, paid in rows], pa.timestamp("us", "UTC")),
        }
    )
    for name in ("part-0.parquet", "part-of-a-failed-try.parquet"):
        pyarrow.parquet.write_table(table, folder / name)
    entry = {"path": f"file://{folder}/part-0.parquet", "size": 1, "action": "add"}
    (folder / "_spark_metadata" / "0").write_text("v1\n" + json.dumps(entry))
    (folder / "_spark_metadata" / "1").write_text("v1")


def _write_topics(broker: Broker, paid: list[int], bad: list[bytes]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    topics = [NewTopic(name, num_partitions=2) for name in (PAID_TOPIC, DEAD_LETTERS_TOPIC)]
    for created in admin.create_topics(topics).values():
        created.result()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in paid:
        producer.produce(PAID_TOPIC, b"{}", str(number))
    for value in bad:
        producer.produce(DEAD_LETTERS_TOPIC, value, headers=[("mainstem.dead-letter.step", b"orders.decode")])
    assert producer.flush(30) == 0


def test_everything_once_is_right(tmp_path: Path) -> None:
    _write_table(tmp_path / TABLE, RIGHT)
    with Broker() as broker:
        _write_topics(broker, [2, 1], [b"{bad"])
        outcome = check(EXPECTED, broker.bootstrap_servers, tmp_path)
    assert outcome.is_right
    assert [output.found for output in outcome.outputs] == [2, 2, 2, 1]
    assert outcome.reasons == {"orders.decode": 1}


def test_what_is_missing_twice_or_strange_is_found(tmp_path: Path) -> None:
    _write_table(tmp_path / TABLE, [(1, True), (2, False), (3, False), (4, False)])
    with Broker() as broker:
        _write_topics(broker, [1, 1], [b"{bad", b"{worse"])
        outcome = check(EXPECTED, broker.bootstrap_servers, tmp_path)
    assert not outcome.is_right
    assert [(output.missing, output.extra) for output in outcome.outputs] == [(1, 1), (1, 0), (0, 1), (0, 1)]


def test_a_table_that_was_never_written_has_no_rows(tmp_path: Path) -> None:
    assert table_rows(tmp_path / "none") == []
