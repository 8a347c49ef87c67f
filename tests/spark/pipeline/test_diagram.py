"""A pipeline is drawn as a tree, and what is not written anywhere is named."""

from pathlib import Path

from mainstem.spark.pipeline.diagram import draw
from mainstem.spark.pipeline.file.reader import parse
from mainstem.spark.pipeline.graph import Graph

TEXT = """\
pipeline: shop
dead_letters: shop.dead
sources:
  orders:
    topic: orders
    decode: {schema: 'id BIGINT, at TIMESTAMP'}
    watermark: {column: at, delay: 5m}
  payments: {topic: payments, decode: {schema: 'id BIGINT'}}
  spare: {topic: spare}
steps:
  big: SELECT * FROM orders
  paid: {join: [big, payments], on: big.id = payments.id}
  totals: {from: big, by: [id], window: {column: at, size: 1 minute}, aggregate: {n: count(*)}}
sinks:
  out: {from: paid, topic: out}
  lake: {from: totals, parquet: ./lake}
  table: {from: big, jdbc: 'postgresql://ann:s3cret@db/shop', table: big}
"""

DIAGRAM = """\
shop
orders: topic orders, json, watermark at, 5 minutes late
└─ big: sql SELECT * FROM orders
   ├─ paid: inner join of big and payments on big.id = payments.id
   │  └─ out ==> topic out, json, exactly once
   ├─ totals: n by windows of 1 minute, id
   │  └─ lake ==> parquet ./lake
   └─ table ==> table big in postgresql://ann:***@db/shop
payments: topic payments, json
└─ paid (see above)
spare: topic spare, raw
bad records ==> topic shop.dead
not written anywhere: spare"""


def test_a_diagram() -> None:
    pipeline = parse(TEXT).pipeline
    assert pipeline is not None
    assert draw(pipeline, Path()) == DIAGRAM


def test_the_order_of_views_and_what_flows_into_a_sink() -> None:
    pipeline = parse(TEXT).pipeline
    assert pipeline is not None
    graph = Graph(pipeline, Path())
    assert graph.upstream("PAID") == ["orders", "big", "payments", "paid"]
    order = graph.order()
    assert order.index("big") < order.index("paid")
    assert graph.readers("orders") == (["big"], [])
    assert graph.streams("totals")
