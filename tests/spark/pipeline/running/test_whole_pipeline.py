"""A whole pipeline runs in a process of its own: several sinks, dead letters, metrics, a stop, a restart."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset
import pytest
from deltalake import DeltaTable

from mainstem.testing import Broker
from tests.spark.pipeline.shop import Shop, rows_out

pytestmark = [pytest.mark.peer, pytest.mark.timeout(1200)]

FILE = """\
pipeline: shop
dead_letters: shop.dead
checkpoint: ./checkpoint
group: shop-readers
sources:
  orders:
    topic: orders
    decode: {format: json, schema: 'id BIGINT NOT NULL, product STRING, amount DOUBLE, at TIMESTAMP'}
    require: {positive: amount > 0}
    watermark: {column: at, delay: 10 minutes}
  products: {file: products.csv}
steps:
  unique: {deduplicate: [id], from: orders}
  named:
    join: [unique, products]
    on: [product]
    type: left
  marked: {python: functions.py:mark, from: named, with: {mark: seen}}
  totals: {from: orders, by: [product], aggregate: {n: count(*)}}
sinks:
  out: {from: marked, topic: marked, key: id}
  lake: {from: unique, parquet: ./lake}
  table: {from: orders, delta: ./table}
  base: {from: totals, jdbc: 'sqlite:///shop.db', table: totals, keys: [product], mode: update}
"""
FUNCTIONS = """\
from pyspark.sql import functions as F


def mark(frame, mark):
    shout = F.udf(lambda text: text.upper())
    return frame.withColumn("mark", shout(F.lit(mark)))
"""


def _order(number: int) -> bytes:
    at = f"2026-01-31T12:00:{number % 60:02d}Z"
    return json.dumps({"id": number, "product": "pen", "amount": 1.5, "at": at}).encode()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    (tmp_path / "shop.yaml").write_text(FILE)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "products.csv").write_text("product,price\npen,2\n")
    with Broker() as broker, Shop(tmp_path, broker) as running:
        running.produce("orders", *map(_order, range(20)), _order(3))
        running.produce("orders", b"{bad", b'{"id": 99, "amount": -1}', key=b"k")
        yield running


def test_a_pipeline_with_all_its_parts(shop: Shop) -> None:
    shop.start("--metrics-port", "0")
    shop.until(
        lambda state: (
            rows_out(state, "out") == 20
            and rows_out(state, "table") == 21
            and rows_out(state, "base") == 1
            and state["snapshot"]["dead_letters"] == 2
            and state["snapshot"]["lags"] == [{"topic": "orders", "records": 0, "seconds": 0.0}]
        ),
        "the first records",
    )
    metrics = shop.metrics(shop.status())
    assert 'mainstem_pipeline_rows_out_total{pipeline="shop",sink="out"} 20' in metrics
    assert 'mainstem_pipeline_dead_letters_total{pipeline="shop",source="orders"} 2' in metrics
    assert 'mainstem_pipeline_lag_records{pipeline="shop",topic="orders"} 0' in metrics
    assert "is running already" in shop.command("pipeline", "run", str(shop.folder / "shop.yaml")).stderr
    shop.produce("orders", *map(_order, range(20, 30)))
    shop.until(
        lambda state: rows_out(state, "out") == 30 and rows_out(state, "base") == 2, "the second records"
    )
    stopped = shop.command("pipeline", "stop", "shop", "--timeout", "300")
    assert stopped.stdout == "stopped shop\n", stopped.stderr
    code, printed = shop.wait()
    assert code == 0, printed
    assert "Exception" not in printed
    assert "WARN" not in printed
    state = shop.status()
    assert (state["phase"], state["snapshot"]["records_read"]) == ("ended", 33)
    _check_outputs(shop, 30)
    lag = shop.command("groups", "lag", "shop-readers", "--json")
    assert [group["lag"] for group in json.loads(lag.stdout)] == [0]
    # The repaired letters come back into the pipeline, and a restart goes on where it was.
    assert "sent 2 again to orders" in _replay(shop)
    shop.produce("orders", *map(_order, range(30, 35)))
    code, printed = shop.run("--once")
    assert code == 0, printed
    _check_outputs(shop, 35)
    assert len(shop.read("shop.dead")) == 4


def _replay(shop: Shop) -> str:
    return shop.command("pipeline", "replay-dead-letters", str(shop.folder / "shop.yaml")).stdout


def _check_outputs(shop: Shop, orders: int) -> None:
    records = [json.loads(message.value() or b"") for message in shop.read("marked")]
    assert sorted(record["id"] for record in records) == list(range(orders))
    assert {(record["mark"], record["price"]) for record in records} == {("SEEN", 2)}
    lake = pyarrow.dataset.dataset(shop.folder / "lake", format="parquet", exclude_invalid_files=True)
    assert sorted(lake.to_table(columns=["id"]).column("id").to_pylist()) == list(range(orders))
    table = DeltaTable(shop.folder / "table").to_pyarrow_table()
    assert sorted(table.column("id").to_pylist()) == sorted([*range(orders), 3])
    with sqlite3.connect(shop.folder / "shop.db") as connection:
        assert connection.execute("SELECT product, n FROM totals").fetchall() == [("pen", orders + 1)]
    letter = next(message for message in shop.read("shop.dead") if message.value() == b"{bad")
    assert letter.key() == b"k"
    headers = dict(letter.headers() or [])
    assert headers["trace"] == b"t"
    assert headers["mainstem.dead-letter.step"] == b"orders.decode"
