"""The checks find what is wrong with a pipeline before Spark starts, and offer what may be meant."""

import importlib.machinery
import json
import sys
from pathlib import Path

import pytest

from tests.spark.pipeline.mistakes import BASE, base_with, mistakes


def test_the_base_is_fine() -> None:
    assert mistakes(BASE) == []


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ("trigger: sometimes", "'sometimes' is no trigger -> use a time between batches"),
        ("bootstrap: localhost", "'localhost' is not HOST:PORT"),
        ("kafka: {kafka.security.protocol: SSL}", "leave the prefix kafka. out here"),
        ("spark: {sql.shuffle.partitions: 2}", "write spark.sql.shuffle.partitions"),
        ("checkpont: ./x", "there is no 'checkpont' here -> did you mean checkpoint?"),
    ],
)
def test_mistakes_at_the_top(top: str, message: str) -> None:
    (line,) = mistakes(base_with(top=top))
    assert message in line


def test_cycles_of_several_steps_are_shown_whole() -> None:
    text = BASE.replace(
        "sinks:\n", "  a: SELECT * FROM c\n  b: SELECT * FROM a\n  c: SELECT * FROM B\nsinks:\n", 1
    )
    assert mistakes(text) == [":13:3: steps.a: it reads itself: a -> c -> b -> a"]


def test_windows_further_apart_than_they_are_long() -> None:
    def told_of(slide: str) -> list[str]:
        window = f"{{column: at, size: 1 minute, slide: {slide}}}"
        return mistakes(base_with(step=f"{{from: one, aggregate: {{n: count(*)}}, window: {window}}}"))

    (problem,) = told_of("5 minutes")
    assert "windows of 1 minute that are 5 minutes apart" in problem
    assert told_of("30 s") == []


def test_two_sinks_must_not_share_a_folder() -> None:
    text = BASE + "  a: {from: one, parquet: ./x}\n  b: {from: one, parquet: ./x/}\n"
    assert mistakes(text) == [":16:27: sinks.b: a writes there already -> give each its own place"]


def test_names_of_views_are_compared_as_sql_does() -> None:
    assert mistakes(base_with(step="{sql: SELECT * FROM ORDERS}")) == []
    (line,) = mistakes(BASE.replace("  one: SELECT", "  Orders: SELECT 1\n  one: SELECT"))
    assert "there is a view 'Orders' in sources already" in line
    (line,) = mistakes(BASE.replace("  one: SELECT", "  a-b: SELECT 1\n  one: SELECT"))
    assert "'a-b' is no name for a view" in line


def test_files_that_a_pipeline_names_are_read(tmp_path: Path) -> None:
    (tmp_path / "schema.ddl").write_text("id BIGINT,\n at TIMESTAMP")
    (tmp_path / "query.sql").write_text("SELECT * FROM extra")
    (tmp_path / "extra_functions.py").write_text("def clean(frame):\n    return frame\n")
    (tmp_path / "broken_functions.py").write_text("import no_such_module_anywhere\n")
    source = "{topic: a, decode: {format: json, schema_file: schema.ddl}, watermark: {column: at, delay: 1m}}"
    text = base_with(source=source, step="{sql_file: query.sql}")
    assert mistakes(text, tmp_path) == []
    assert mistakes(base_with(step="{python: extra_functions.py:clean, from: one}"), tmp_path) == []
    assert mistakes(base_with(step="{python: 'extra_functions:clean', from: one}"), tmp_path) == []
    (line,) = mistakes(base_with(step="{python: extra_functions.py:cleen, from: one}"), tmp_path)
    assert "there is no cleen in extra_functions.py -> did you mean clean?" in line
    (line,) = mistakes(base_with(step="{python: broken_functions.py:f, from: one}"), tmp_path)
    assert "broken_functions.py cannot be imported: No module named 'no_such_module_anywhere'" in line


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT *\n  FROM ordrs", "query.sql:2:8: there is no view 'ordrs'"),
        ("SELECT *\nFROM orders WHERE x = 'y", "query.sql:2:23: this is no SQL: "),
        ("SELECT 1;\nSELECT 2", "query.sql:1:9: a step has one query"),
    ],
)
def test_a_mistake_in_a_file_with_a_query_is_told_with_its_place_there(
    tmp_path: Path, query: str, told: str
) -> None:
    (tmp_path / "query.sql").write_text(query)
    text = base_with(step="{sql_file: query.sql}")
    (line,) = mistakes(text, tmp_path)
    row = next(number for number, each in enumerate(text.splitlines(), 1) if "query.sql" in each)
    assert line.startswith(f":{row}:20: steps.made: {told}")


def test_a_file_may_have_the_name_of_a_module_of_python(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("def clean(frame):\n    return frame\n")
    assert mistakes(base_with(step="{python: json.py:clean, from: one}"), tmp_path) == []
    # Nor does it become the json of a process that inherits our path, or of a library that imports it later.
    found = importlib.machinery.PathFinder.find_spec("json", sys.path)
    assert found is not None
    assert found.origin == json.__file__


@pytest.mark.parametrize(
    ("pattern", "line", "message"),
    [
        ("orders", 6, "all reads orders-out: the pipeline would read what it writes for ever"),
        ("^p", 6, "p.dead is this pipeline's topic of dead letters: a bad record would come back"),
    ],
)
def test_a_pattern_that_matches_what_the_pipeline_writes(pattern: str, line: int, message: str) -> None:
    text = """\
pipeline: p
dead_letters: p.dead
sources:
  all:
    bootstrap: localhost:9092
    pattern: PATTERN
sinks:
  out: {from: all, topic: orders-out}
"""
    own = text.replace("    bootstrap: localhost:9092\n", "    from: earliest\n")
    (problem,) = mistakes(own.replace("PATTERN", pattern))
    assert problem.startswith(f":{line}:14: sources.all: {message} -> a pattern is searched for anywhere")
    assert mistakes(own.replace("PATTERN", "^orders$")) == []
    # On another cluster there may be topics of the same name.
    assert mistakes(text.replace("PATTERN", pattern)) == []
