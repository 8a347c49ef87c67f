"""Spark's analyser finds what is wrong with a pipeline on streams without records: no broker, no topic, no
run. Each refusal is at the piece that is wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mainstem.spark.pipeline.checking.spark_checks import SparkChecks, checks_of
from mainstem.spark.pipeline.checking.validate import checked
from mainstem.spark.pipeline.file.reader import parse
from tests.spark.pipeline.told import told

pytestmark = pytest.mark.peer

BASE = """\
pipeline: shop
bootstrap: localhost:1
dead_letters: shop.dead-letters
sources:
  orders:
    topic: orders
    decode: {format: json, schema: 'id BIGINT NOT NULL, product STRING, amount DOUBLE, at TIMESTAMP'}
    watermark: {column: at, delay: 10 minutes}
    require:
      positive: amount > 0
  payments:
    topic: payments
    decode: {format: json, schema: 'order_id BIGINT NOT NULL, paid DOUBLE, paid_at TIMESTAMP'}
    watermark: {column: paid_at, delay: 10 minutes}
steps:
  big: SELECT * FROM orders WHERE amount > 100
  paid:
    join: [orders, payments]
    on: orders.id = payments.order_id AND payments.paid_at BETWEEN orders.at AND orders.at + INTERVAL 1 HOUR
    select: [orders.id, payments.paid]
  per_minute:
    from: big
    window: {column: at, size: 1 minute}
    by: [product]
    aggregate:
      orders: count(*)
      total: sum(amount)
sinks:
  big_orders:
    from: big
    topic: big-orders
    key: id
    headers: {kind: product}
  paid_orders: {from: paid, topic: paid-orders, key: id}
  totals: {from: per_minute, parquet: ./totals}
"""

Found = Callable[..., list[str]]


def _checks(spark: SparkSession, text: str, folder: Path) -> tuple[SparkChecks, list[str]]:
    file = str(folder / "p.yaml")
    document = checked(parse(text, file))
    found = checks_of(spark, document)
    problems = sorted(
        [*document.problems, *found.problems], key=lambda problem: document.locate(problem) or (0, 0)
    )
    return found, told(document, problems, file)


@pytest.fixture
def found(spark: SparkSession, tmp_path: Path) -> Found:
    """The problems of the base with some of its text replaced."""

    def find(*replaced: tuple[str, str], more: str = "") -> list[str]:
        text = BASE + more
        for old, new in replaced:
            assert old in text
            text = text.replace(old, new)
        return _checks(spark, text, tmp_path)[1]

    return find


def test_the_base_is_fine(found: Found) -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "amount > 100",
            "amuont > 100",
            ":16:35: steps.big: there is no column 'amuont' -> did you mean amount?",
        ),
        ("amount > 100", "foo(amount) > 100", ":16:35: steps.big: there is no function 'foo'"),
        ("amount > 0", "amuont > 0", ":10:17: sources.orders: there is no column 'amuont'"),
        (
            "positive: amount > 0",
            "positive: amount",
            ":10:17: sources.orders: this is double, not a condition",
        ),
        ("positive: amount > 0", "positive: product", "sources.orders: this is string, not a condition"),
        ("payments.paid]", "payments.payd]", ":20:25: steps.paid: there is no column 'payments.payd'"),
        ("= payments.order_id", "= payments.orderid", ":19:21: steps.paid: there is no column"),
        ("sum(amount)", "sum(amout)", ":27:18: steps.per_minute: there is no column 'amout'"),
        ("sum(amount)", "amount", ":27:14: steps.per_minute: The non-aggregating expression"),
        ("by: [product]", "by: [produkt]", ":24:10: steps.per_minute: big has no column 'produkt'"),
        (
            "column: at, size",
            "column: product, size",
            ":23:22: steps.per_minute: product is string, not a time",
        ),
        ("    key: id\n", "    key: idd\n", ":32:10: sinks.big_orders: there is no column 'idd'"),
        ("{kind: product}", "{kind: nope}", ":33:21: sinks.big_orders: there is no column 'nope'"),
        (
            "    key: id\n",
            "    partition: product\n",
            ":32:16: sinks.big_orders: this is string, not the number of a partition",
        ),
        (
            "    key: id\n    headers: {kind: product}",
            "    encode: raw",
            ":32:13: sinks.big_orders: Required attribute 'value' not found",
        ),
        ("parquet: ./totals", "parquet: ./totals, partition_by: [nope]", "has no column 'nope'"),
        ("    key: id\n", "    mode: complete\n", ":32:11: sinks.big_orders: "),
    ],
)
def test_each_piece_is_told_at_its_place(found: Found, old: str, new: str, expected: str) -> None:
    (problem,) = found((old, new))
    assert expected in problem


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("column: at, delay", "column: att, delay", ":8:25: sources.orders: there is no column 'att'"),
        (
            "column: at, delay",
            "column: id, delay",
            ":8:25: sources.orders: The event time `id` has",
        ),
    ],
)
def test_the_watermark_of_a_source(found: Found, old: str, new: str, expected: str) -> None:
    (problem,) = found((old, new))
    assert expected in problem


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("{watermark: att, delay: 1m, from: orders}", ":28:21: steps.made: there is no column 'att'"),
        (
            "{watermark: id, delay: 1m, from: orders}",
            ":28:21: steps.made: The event time `id` has",
        ),
        (
            "{deduplicate: [idd], from: orders}",
            ":28:24: steps.made: orders has no column 'idd' -> did you mean id?",
        ),
        (
            "{join: [orders, payments], on: [amount]}",
            ":28:41: steps.made: payments has no column 'amount'",
        ),
    ],
)
def test_columns_that_a_step_needs(found: Found, step: str, expected: str) -> None:
    (problem,) = found(("sinks:\n", f"  made: {step}\nsinks:\n"))
    assert expected in problem


PLAIN = "  plain: {topic: plain, decode: {schema: 'id BIGINT, at TIMESTAMP'}}\nsteps:\n"


def test_an_outer_join_needs_watermarks(found: Found) -> None:
    step = "  made: {join: [orders, plain], on: orders.id = plain.id, type: left, select: [orders.id]}\n"
    replaced = ("steps:\n", PLAIN), ("sinks:\n", f"{step}sinks:\n")
    (problem,) = found(*replaced, more="  t2: {from: made, topic: x}\n")
    assert ":29:3: steps.made: Stream-stream LeftOuter join" in problem
    assert problem.endswith("-> t2 writes it in append mode")


def test_an_aggregate_without_a_watermark_cannot_be_appended(found: Found) -> None:
    step = "  made: {from: plain, by: [id], aggregate: {n: count(*)}}\nsinks:\n"
    sink = "  t2: {from: made, topic: x, mode: MODE}\n"
    replaced = ("steps:\n", PLAIN), ("sinks:\n", step)
    (problem,) = found(*replaced, more=sink.replace("MODE", "append"))
    assert ":29:3: steps.made: " in problem
    assert "not supported for streaming aggregations without watermark" in problem
    assert problem.endswith("-> t2 writes it in append mode")
    assert found(*replaced, more=sink.replace("MODE", "update")) == []


def test_a_column_that_a_query_in_a_file_misspells(found: Found, tmp_path: Path) -> None:
    (tmp_path / "big.sql").write_text("\n SELECT * FROM orders\nWHERE amuont > 100\n")
    (problem,) = found(("SELECT * FROM orders WHERE amount > 100", "{sql_file: big.sql}"))
    assert problem == (":16:19: steps.big: big.sql:3:7: there is no column 'amuont' -> did you mean amount?")


def test_what_is_made_of_a_wrong_part_is_not_wrong_as_well(found: Found) -> None:
    problems = found(
        ("amount > 100", "amuont > 100"), ("    key: id\n", "    key: idd\n"), ("paid]", "payd]")
    )
    assert [problem.split(":")[1] for problem in problems] == ["16", "20"]


def test_a_mistake_that_is_nothing_to_spark_does_not_hide_another(found: Found) -> None:
    problems = found(("    key: id\n", "    key: idd\n    options: {kafka.acks: 1}\n"))
    assert [problem.split(":")[1] for problem in problems] == ["32", "33"]


def test_a_key_of_a_table_that_a_query_does_not_give(found: Found) -> None:
    (problem,) = found(more="  rows: {from: big, jdbc: 'sqlite:///x.db', table: t, keys: [nope]}\n")
    assert "sinks.rows: big has no column 'nope'" in problem


def test_an_aggregate_of_an_aggregate(found: Found) -> None:
    step = "  again: SELECT product, count(*) AS n FROM per_minute GROUP BY product\nsinks:\n"
    (problem,) = found(("sinks:\n", step), more="  t2: {from: again, topic: x}\n")
    assert ":28:3: steps.again: Invalid streaming output mode: append" in problem
    assert problem.endswith("-> t2 writes it in append mode")


def test_what_a_function_raises_has_its_line(found: Found, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def fine(frame):\n    return frame\n\n\ndef bad(frame):\n    return frame.x\n"
    )
    step = "  made: {python: 'own.py:NAME', from: orders}\nsinks:\n"
    assert found(("sinks:\n", step.replace("NAME", "fine"))) == []
    (problem,) = found(("sinks:\n", step.replace("NAME", "bad")))
    assert ":28:18: steps.made: own.py:6: " in problem
    (tmp_path / "own.py").unlink()
    (tmp_path / "other.py").write_text("def bad(frame):\n    raise KeyError('gone')\n")
    (problem,) = found(("sinks:\n", step.replace("own.py:NAME", "other.py:bad")))
    assert "steps.made: other.py:2: KeyError: 'gone'" in problem


def test_grammar_is_checked_as_well(found: Found) -> None:
    (problem,) = found(("WHERE amount > 100", "WHER amount > 100"))
    assert "steps.big: Syntax error at or near 'amount'" in problem


def test_a_schema_that_is_not_inferred_yet_is_named(spark: SparkSession, tmp_path: Path) -> None:
    text = f"checkpoint: {tmp_path}\n" + BASE.replace(
        "schema: 'id BIGINT NOT NULL, product STRING, amount DOUBLE, at TIMESTAMP'", "infer: 100"
    )
    checks, problems = _checks(spark, text, tmp_path)
    assert (checks.unknown, problems) == (["orders"], [])
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "orders.ddl").write_text("id BIGINT, product STRING, amount STRING, at TIMESTAMP")
    checks, problems = _checks(spark, text.replace("amount > 100", "amuont > 100"), tmp_path)
    assert checks.unknown == []
    assert "there is no column 'amuont'" in problems[0]


AVRO_FIELDS = [{"name": "id", "type": "long"}, {"name": "amount", "type": "double"}]


def _avro_sink(folder: Path, fields: list[dict[str, str]], more: str = "") -> str:
    (folder / "order.avsc").write_text(json.dumps({"type": "record", "name": "Order", "fields": fields}))
    return f"  as_avro: {{from: few, topic: as-avro, encode: avro, schema_file: order.avsc{more}}}\n"


def test_the_columns_of_an_avro_sink_are_compared_with_its_schema(found: Found, tmp_path: Path) -> None:
    step = ("steps:\n", "steps:\n  few: SELECT id, amount FROM orders\n")
    assert found(step, more=_avro_sink(tmp_path, AVRO_FIELDS)) == []
    fields = [{"name": "id", "type": "int"}, {"name": "total", "type": "double"}]
    assert found(step, more=_avro_sink(tmp_path, fields)) == [
        ":37:67: sinks.as_avro: the column id is BIGINT, which the schema's INT does not take"
        " -> write CAST(id AS INT) AS id, or change the schema",
        ":37:67: sinks.as_avro: the schema's field total has no default, and no column has its name"
        " -> add the column to the view, or give the field a default",
        ":37:67: sinks.as_avro: the schema has no field for the column amount: it would not be written"
        " -> add a field to the schema, or leave it out of the view",
    ]


def test_a_column_for_the_key_or_a_header_need_not_be_in_the_avro_schema(
    found: Found, tmp_path: Path
) -> None:
    step = ("steps:\n", "steps:\n  few: SELECT id, amount, product, at FROM orders\n")
    more = ", key: upper(product), headers: {at: at}"
    assert found(step, more=_avro_sink(tmp_path, AVRO_FIELDS, more)) == []
    (problem,) = found(step, more=_avro_sink(tmp_path, AVRO_FIELDS, ", key: product"))
    assert "the schema has no field for the column at" in problem
