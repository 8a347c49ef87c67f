"""A pipeline file becomes a Pipeline, and every mistake in its form is found with file, line and column."""

from pathlib import Path

import pytest

from mainstem.spark.pipeline import (
    AggregateStep,
    Decode,
    JoinStep,
    Pipeline,
    SqlStep,
    TopicSink,
    TopicSource,
    Watermark,
    Window,
    validate,
)
from mainstem.spark.pipeline.checking.validate import checked
from mainstem.spark.pipeline.file.reader import Document, load, parse

WHOLE = """\
pipeline: orders
dead_letters: orders.dead
trigger: 5 seconds
sources:
  orders:
    topic: orders
    from: 2026-01-31T12:00:00Z
    rate: 1000
    decode:
      format: json
      schema: id BIGINT NOT NULL, amount DOUBLE, at TIMESTAMP
    watermark: {column: at, delay: 10 minutes}
  payments: {topics: [p1, p2], decode: {format: json, schema: 'order_id BIGINT, paid_at TIMESTAMP'}}
steps:
  big: SELECT * FROM orders WHERE amount > 100
  totals:
    from: orders
    window: {column: at, size: 1 minute}
    aggregate: {total: sum(amount)}
  paid:
    join: [orders, payments]
    on: orders.id = payments.order_id
sinks:
  out: {from: big, topic: big-orders, key: id}
  lake: {from: totals, parquet: ./lake}
  paid: {from: paid, parquet: ./paid}
"""


def _lines(text: str, file: str = "flow.yaml") -> list[str]:
    document = checked(parse(text, file))
    return [document.describe(problem) for problem in document.problems]


def _fine(document: Document) -> Pipeline:
    assert [document.describe(problem) for problem in document.problems] == []
    assert document.pipeline is not None
    return document.pipeline


def test_a_file_becomes_a_pipeline() -> None:
    pipeline = _fine(checked(parse(WHOLE)))
    orders = pipeline.sources["orders"]
    assert isinstance(orders, TopicSource)
    assert orders.start == "2026-01-31T12:00:00Z"
    assert orders.decode.schema == "id BIGINT NOT NULL, amount DOUBLE, at TIMESTAMP"
    assert orders.watermark == Watermark(column="at", delay="10 minutes")
    assert pipeline.steps["big"] == SqlStep(sql="SELECT * FROM orders WHERE amount > 100")
    assert pipeline.steps["totals"] == AggregateStep(
        source="orders", window=Window(column="at", size="1 minute"), aggregate={"total": "sum(amount)"}
    )
    join = pipeline.steps["paid"]
    assert isinstance(join, JoinStep)
    assert join.on == "orders.id = payments.order_id"  # YAML itself takes `on` for true
    assert pipeline.sinks["out"] == TopicSink(source="big", topic="big-orders", key="id")
    assert pipeline.dead_letters is not None
    assert pipeline.dead_letters.topic == "orders.dead"


def test_the_same_pipeline_in_python_is_equal() -> None:
    text = """\
pipeline: small
sources: {orders: {topic: orders, decode: {schema: id BIGINT}}}
steps: {big: SELECT * FROM orders}
sinks: {out: {from: big, topic: out}}
"""
    built = Pipeline(
        name="small",
        sources={"orders": TopicSource(topic="orders", decode=Decode(schema="id BIGINT"))},
        steps={"big": SqlStep(sql="SELECT * FROM orders")},
        sinks={"out": TopicSink(source="big", topic="out")},
    )
    assert _fine(checked(parse(text))) == built
    assert validate(built) == []


def test_a_python_file_holds_a_pipeline(tmp_path: Path) -> None:
    file = tmp_path / "flow_in_python.py"
    file.write_text(
        "from mainstem.spark.pipeline import Pipeline, TopicSink, TopicSource\n"
        "pipeline = Pipeline(name='p', sources={'a': TopicSource(topic='a')},\n"
        "                    sinks={'b': TopicSink(source='a', topic='b', encode='raw')})\n"
        "broken = 3\n"
    )
    assert _fine(checked(load(str(file)))).name == "p"
    (problem,) = load(f"{file}:broken").problems
    assert problem.message == "there is no Pipeline named 'broken' in it"


def test_a_python_file_that_fails_points_to_its_line(tmp_path: Path) -> None:
    file = tmp_path / "flow_that_fails.py"
    file.write_text("x = 1\ny = x / 0\n")
    document = load(file)
    assert document.describe(document.problems[0]) == (
        f"{file}:2:1: the file fails: ZeroDivisionError: division by zero"
    )


def test_wrong_types_in_python_are_found_too() -> None:
    built = Pipeline(
        name="p",
        sources={"a": TopicSource(topic="a", rate="many")},  # type: ignore[arg-type]
        sinks={"b": TopicSink(source="a", topic="b", encode="raw")},
    )
    (problem,) = validate(built)
    assert problem.path == ("sources", "a", "rate")
    assert problem.message == "must be a whole number, not 'many'"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("rate: 1000", "rate: many", "flow.yaml:8:11: sources.orders: must be a whole number, not 'many'"),
        ("rate: 1000", "rate: true", "flow.yaml:8:11: sources.orders: must be a whole number, not 'true'"),
        ("rate: 1000", "rates: 1000", "flow.yaml:8:5: sources.orders: there is no 'rates' here"),
        (
            "format: json\n",
            "format: jsn\n",
            "flow.yaml:10:15: sources.orders: 'jsn' is not one of json, csv, avro,",
        ),
        ("trigger: 5 seconds", "trigger: [5]", "flow.yaml:3:10: must be a text, not a list"),
        (
            "topics: [p1, p2]",
            "topics: {a: b}",
            "flow.yaml:13:22: sources.payments: must be a list, not a mapping",
        ),
        ("    aggregate: {total: sum(amount)}\n", "", "flow.yaml:17:5: steps.totals: needs one of sql,"),
        ("topic: big-orders", "topc: big-orders", "flow.yaml:24:20: sinks.out: there is no 'topc' here"),
        ("key: id}", "parquet: ./x}", "flow.yaml:24:39: sinks.out: topic and parquet exclude each other"),
        ("from: totals, ", "", "flow.yaml:25:9: sinks.lake: from is missing"),
        ("pipeline: orders", "pipeline: orders\npipeline: twice", "flow.yaml:2:1: pipeline is here twice"),
        ("rate: 1000", "rate:", None),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, expected: str | None) -> None:
    assert old in WHOLE
    lines = _lines(WHOLE.replace(old, new))
    assert len(lines) == (0 if expected is None else 1), lines
    if expected is not None:
        assert lines[0].startswith(expected)


def test_every_mistake_is_found_at_once() -> None:
    text = (
        WHOLE.replace("rate: 1000", "rate: many")
        .replace("schema: id BIGINT", "schema: id BIGNT")
        .replace("FROM orders WHERE", "FROM order WHERE")
        .replace("on: orders.id", "onn: orders.id")
        .replace("from: big,", "from: bigg,")
    )
    lines = _lines(text)
    assert [line.partition(": ")[0] for line in lines] == [
        "flow.yaml:8:11",
        "flow.yaml:11:18",
        "flow.yaml:15:22",
        "flow.yaml:21:5",
        "flow.yaml:22:5",
        "flow.yaml:24:15",
    ]


def test_what_is_no_yaml_is_told_with_its_place() -> None:
    (line,) = _lines("pipeline: x\nsources: {a: [}\n")
    assert line.startswith("flow.yaml:2:15: this is not YAML:")
    assert _lines("")[0].startswith("flow.yaml:1:1: pipeline is missing")
    assert _lines("- a\n- b")[0] == "flow.yaml:1:1: must be a mapping, not a list"


def test_the_environment_fills_in_what_must_not_stand_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER", "kafka:9092")
    text = WHOLE + "bootstrap: ${CLUSTER}\ngroup: ${GROUP_NAME:-readers}\n"
    pipeline = _fine(checked(parse(text)))
    assert (pipeline.bootstrap, pipeline.group) == ("kafka:9092", "readers")
    (line,) = _lines(WHOLE + "group: ${NOT_THERE_AT_ALL}\n")
    assert line == "flow.yaml:27:8: the environment has no NOT_THERE_AT_ALL"


def test_a_place_inside_of_a_block_of_sql_is_its_own_line() -> None:
    text = WHOLE.replace(
        "big: SELECT * FROM orders WHERE amount > 100", "big:\n    sql: |\n      SELECT *\n      FROM order"
    )
    assert _lines(text) == ["flow.yaml:18:12: steps.big: there is no view 'order'"]
