"""What Spark makes of each kind of step."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from mainstem.spark.pipeline import (
    AggregateStep,
    DeduplicateStep,
    JoinStep,
    Pipeline,
    PipelineError,
    PythonStep,
    SqlStep,
    Window,
)
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.running.context import BuildContext
from mainstem.spark.pipeline.running.views import read_topics
from mainstem.spark.pipeline.steps import Step

pytestmark = pytest.mark.peer

AT = datetime.datetime(2026, 1, 31, 12, 0, 0)


def _made(spark: SparkSession, step: Step, views: Mapping[str, DataFrame]) -> DataFrame:
    pipeline = Pipeline(name="p")
    places = Places(pipeline, Path())
    return step.make(BuildContext(spark, ("steps", "step"), pipeline, places, Path(), views, read_topics))


def test_steps(spark: SparkSession) -> None:
    rows = [(1, "a", 10.0, AT), (2, "a", 20.0, AT), (3, "b", 5.0, AT + datetime.timedelta(minutes=2))]
    orders = spark.createDataFrame(rows, "id INT, product STRING, amount DOUBLE, at TIMESTAMP")
    orders.createOrReplaceTempView("orders")
    paid = spark.createDataFrame([(1, 9.5)], "order_id INT, paid DOUBLE")
    views = {"orders": orders, "payments": paid}

    def made(step: Step) -> list[Any]:
        return [tuple(row) for row in _made(spark, step, views).collect()]

    assert made(SqlStep(sql="SELECT id FROM orders WHERE amount > 15;")) == [(2,)]
    assert made(
        PythonStep(python=lambda frame, n: frame.limit(n).select("id"), inputs="orders", arguments={"n": 1})
    ) == [(1,)]
    totals = AggregateStep(
        source="orders",
        by=["product"],
        window=Window(column="at", size="1 minute"),
        aggregate={"n": "count(*)", "total": "sum(amount)"},
    )
    minute = datetime.timedelta(minutes=1)
    assert sorted(made(totals)) == [
        (AT, AT + minute, "a", 2, 30.0),
        (AT + 2 * minute, AT + 3 * minute, "b", 1, 5.0),
    ]
    session = AggregateStep(
        source="orders", window=Window(column="at", gap="5m"), aggregate={"n": "count(*)"}
    )
    assert made(session) == [(AT, AT + 7 * minute, 3)]
    join = JoinStep(join=["orders", "payments"], on="orders.id = payments.order_id", select=["id", "paid"])
    assert made(join) == [(1, 9.5)]
    assert len(made(DeduplicateStep(source="orders", deduplicate=["product"], within_watermark=False))) == 2


def test_a_join_with_the_same_column_on_both_sides_is_refused(spark: SparkSession) -> None:
    one = spark.createDataFrame([(1, 2)], "id INT, at INT")
    step = JoinStep(join=["a", "b"], on="a.id = b.id")
    with pytest.raises(PipelineError, match="a and b both have at, id"):
        _made(spark, step, {"a": one, "b": one.select("*")})
