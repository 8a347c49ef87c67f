"""Spark's own parser finds what is wrong with SQL."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mainstem.spark.pipeline.checking.checks import sql_pieces
from mainstem.spark.pipeline.checking.spark_parser import complaint, syntax_problems
from mainstem.spark.pipeline.checking.validate import checked
from mainstem.spark.pipeline.file.reader import parse
from mainstem.spark.pipeline.parts import SqlPiece

TEXT = """\
pipeline: p
sources:
  orders:
    topic: orders
    decode: {schema: 'id BIGINT, at TIMESTAMP'}
    require: {rule: id >> }
steps:
  fine: SELECT id, count(*) AS n FROM orders GROUP BY ALL
  wrong: |
    SELECT id
    FORM orders
  totals: {from: orders, aggregate: {n: sum(id) = = 2}}
sinks:
  out: {from: fine, topic: out, mode: update, key: id a b}
"""


@pytest.mark.peer
def test_each_mistake_is_found_at_its_place(spark: SparkSession) -> None:
    document = checked(parse(TEXT, "p.yaml"))
    assert document.pipeline is not None
    found = syntax_problems(spark, sql_pieces(document.pipeline, Path()))
    assert [document.describe(problem) for problem in found] == [
        "p.yaml:6:26: sources.orders: Syntax error at or near end of input",
        "p.yaml:11:10: steps.wrong: Syntax error at or near 'orders': extra input 'orders'",
        "p.yaml:12:51: steps.totals: Syntax error at or near '='",
        "p.yaml:14:57: sinks.out: Syntax error at or near 'b': extra input 'b'",
    ]


@pytest.mark.peer
def test_a_mistake_in_a_file_has_its_place_there(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "wrong.sql").write_text("\n-- all of them\n  SELECT id\n  FORM orders\n")
    text = TEXT.replace("  wrong: |\n    SELECT id\n    FORM orders\n", "  wrong: {sql_file: wrong.sql}\n")
    document = checked(parse(text, "p.yaml"))
    assert document.pipeline is not None
    found = syntax_problems(spark, sql_pieces(document.pipeline, tmp_path))
    assert document.describe(found[1]) == (
        "p.yaml:9:21: steps.wrong: wrong.sql:4:8: Syntax error at or near 'orders': extra input 'orders'"
    )


def test_the_place_is_moved_by_what_stands_before_the_query() -> None:
    piece = SqlPiece(("steps", "a", "sql"), "\n  SELECT x\n  FRM y", True)
    problem = complaint(
        piece, "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'y'. SQLSTATE: 42601 (line 1, pos 3)"
    )
    assert (problem.message, problem.inside) == ("Syntax error at or near 'y'", (1, 5))
    assert complaint(piece, "[X] y (line 2, pos 6)").inside == (2, 6)
