"""Spark's reports of progress add up to the metrics that are shown, served and committed."""

from typing import Any

from mainstem.spark.pipeline.metrics.progress import (
    QueryProgress,
    Snapshot,
    TopicLag,
    common_positions,
    end_offsets,
)
from mainstem.spark.pipeline.metrics.prometheus import text


def _report(batch_id: int, rows: int, offsets: Any, **more: Any) -> dict[str, Any]:
    return {
        "batchId": batch_id,
        "numInputRows": rows,
        "inputRowsPerSecond": 10.0,
        "processedRowsPerSecond": 20.0,
        "batchDuration": 500,
        "durationMs": {"addBatch": 400},
        "observedMetrics": {"rows": {"rows": rows - 1}},
        "sources": [{"endOffset": offsets}],
        "stateOperators": [{"numRowsTotal": 4}],
        "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
        **more,
    }


def test_reports_add_up_and_are_counted_once() -> None:
    progress = QueryProgress("out")
    first = _report(0, 5, '{"orders": {"0": 5}}')
    assert progress.add([first])
    assert not progress.add([first])
    assert progress.add([first, _report(1, 7, '{"orders": {"0": 12}}')])
    metrics = progress.metrics
    assert (metrics.batches, metrics.rows_in, metrics.rows_out) == (2, 12, 10)
    assert (metrics.batch_ms, metrics.state_rows) == (500, 4)
    assert progress.positions == {("orders", 0): 12}


def test_a_record_counts_once_however_many_queries_and_places_read_it() -> None:
    orders = {"startOffset": '{"orders": {"0": 10}}', "endOffset": '{"orders": {"0": 15}}', "numInputRows": 5}
    payments = {"startOffset": None, "endOffset": '{"paid": {"0": 3, "1": 4}}', "numInputRows": 6}
    table = {"startOffset": None, "endOffset": '{"logOffset": 3}', "numInputRows": 99}
    out, twice, dead = QueryProgress("out"), QueryProgress("twice"), QueryProgress("dead-letters.orders")
    out.add([_report(0, 16, None, sources=[orders, orders, payments, table])])
    twice.add([_report(0, 10, None, sources=[orders | {"numInputRows": 10}])])
    dead.add([_report(0, 5, None, sources=[orders]), _report(1, 2, None, sources=[payments])])
    assert out.metrics.records_read == {"orders": 5, "paid": 6}
    assert twice.metrics.records_read == {"orders": 5}
    snapshot = Snapshot("p", [out.metrics, twice.metrics, dead.metrics])
    assert snapshot.records_read == 11


def test_a_report_of_waiting_is_no_batch() -> None:
    progress = QueryProgress("out")
    progress.add([_report(0, 5, '{"orders": {"0": 5}}')])
    waiting = _report(1, 0, '{"orders": {"0": 5}}', durationMs={"latestOffset": 3})
    assert not progress.add([waiting])
    assert progress.metrics.batches == 1
    assert progress.metrics.input_rate == 0.0


def test_rows_that_only_the_writer_knows_are_taken_from_it() -> None:
    progress = QueryProgress("table")
    progress.add([_report(0, 5, None)], lambda name, batch: 42 if (name, batch) == ("table", 0) else None)
    assert progress.metrics.rows_out == 42


def test_ends_of_several_sources_are_merged_and_other_sources_left_out() -> None:
    report = {
        "sources": [
            {"endOffset": {"a": {"0": 3, "1": 4}}},
            {"endOffset": '{"a": {"0": 2}, "b": {"0": 9}}'},
            {"endOffset": '{"logOffset": 3}'},
            {"endOffset": None},
        ]
    }
    assert end_offsets(report) == {("a", 0): 2, ("a", 1): 4, ("b", 0): 9}


def test_the_group_gets_what_every_reader_has_done() -> None:
    one, two = QueryProgress("one"), QueryProgress("two")
    one.positions = {("a", 0): 10, ("a", 1): 5, ("b", 0): 1}
    two.positions = {("a", 0): 7}
    assert common_positions([one, two], {"a": {"one", "two"}, "b": {"one"}}) == {("a", 0): 7, ("b", 0): 1}
    two.positions = {}
    assert common_positions([one, two], {"a": {"one", "two"}}) == {}


def test_metrics_in_prometheus_text() -> None:
    progress = QueryProgress("out")
    progress.add([_report(0, 5, '{"orders": {"0": 5}}')])
    dead = QueryProgress("dead-letters.orders")
    dead.add([_report(0, 5, '{"orders": {"0": 5}}')])
    snapshot = Snapshot("p", [progress.metrics, dead.metrics], [TopicLag("orders", 3, 1.5), TopicLag("x", 1)])
    assert snapshot.dead_letters == 4
    lines = text(snapshot).splitlines()
    assert 'mainstem_pipeline_rows_in_total{pipeline="p",sink="out"} 5' in lines
    assert 'mainstem_pipeline_lag_records{pipeline="p",topic="orders"} 3' in lines
    assert 'mainstem_pipeline_lag_seconds{pipeline="p",topic="orders"} 1.5' in lines
    assert not any("lag_seconds" in line and '"x"' in line for line in lines)
    assert 'mainstem_pipeline_dead_letters_total{pipeline="p",source="orders"} 4' in lines
    assert "# TYPE mainstem_pipeline_lag_records gauge" in lines
