"""The checks find what is wrong with a pipeline before Spark starts, and offer what may be meant."""

import importlib.machinery
import json
import sys
from pathlib import Path

import pytest

from mainstem.spark.pipeline.checking.validate import checked
from mainstem.spark.pipeline.file.reader import parse
from tests.spark.pipeline.told import told

BASE = """\
pipeline: p
dead_letters: p.dead
sources:
  orders:
    topic: orders
    decode: {format: json, schema: 'id BIGINT, user STRING, amount DOUBLE, at TIMESTAMP'}
    watermark: {column: at, delay: 1 minute}
  plain:
    topic: plain
    decode: {format: json, schema: 'id BIGINT, at TIMESTAMP'}
steps:
  one: SELECT * FROM orders
sinks:
  out: {from: one, topic: out}
"""


def _problems(text: str, folder: Path | None = None) -> list[str]:
    file = str((folder or Path("nowhere")) / "p.yaml")
    document = checked(parse(text, file))
    return told(document, file=file)


def _with(step: str = "", sink: str = "", source: str = "", top: str = "") -> str:
    text = BASE
    if source:
        text = text.replace("steps:\n", f"  extra: {source}\nsteps:\n")
    if step:
        text = text.replace("sinks:\n", f"  made: {step}\nsinks:\n")
    return text + (f"  more: {sink}\n" if sink else "") + (top + "\n" if top else "")


def test_the_base_is_fine() -> None:
    assert _problems(BASE) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{topic: 'bad topic'}", "'bad topic' is no name for a topic"),
        ("{topics: []}", "the list is empty"),
        ("{pattern: 'a('}", "this is no regular expression"),
        ("{topic: a, topics: [b]}", "topic and topics exclude each other"),
        ("{topic: a, from: soon}", "'soon' is no place to start -> use earliest, latest or a time"),
        ("{topic: a, rate: 0}", "at least one record must be read in a batch"),
        ("{topic: a, decode: json}", "the schema of json is missing -> give schema:"),
        ("{topic: a, decode: {format: avro, infer: 10}}", "avro needs its schema"),
        ("{topic: a, decode: {format: avro, schema: '{'}}", "the Avro schema is not JSON"),
        ("{topic: a, decode: {format: avro, schema: '\"int\"'}}", "the Avro schema must describe a record"),
        ("{topic: a, decode: protobuf}", "protobuf needs schema_file, a descriptor set"),
        ("{topic: a, decode: {schema: a INT, schema_file: b}}", "schema and schema_file exclude each other"),
        ("{topic: a, decode: {format: raw, schema: a INT}}", "raw values have no schema"),
        ("{topic: a, decode: {schema: a INT, message: M}}", "only protobuf has messages"),
        ("{topic: a, watermark: {column: timestamp, delay: soon}}", "'soon' is no span of time"),
        ("{topic: a, metadata: [key, key]}", "key is there twice"),
        ("{topic: a, decode: {schema: a INT}, require: {r: 'a > ('}}", "this is no SQL: '(' is not closed"),
        ("{topic: a, require: {r: a > 1}}", "rules need decoded values"),
        (
            "{topic: a, options: {maxOffsetsPerTrigger: 5}}",
            "has a key of its own in a pipeline -> write rate",
        ),
        ("{topic: a, bootstrap: somewhere}", "'somewhere' is not HOST:PORT"),
        ("{topic: p.dead}", "p.dead is this pipeline's topic of dead letters"),
        ("{file: nothing.csv}", "there is no nothing.csv"),
    ],
)
def test_mistakes_in_a_source(source: str, message: str) -> None:
    (line,) = _problems(_with(source=source))
    assert message in line


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{sql: SELECT * FROM ordrs}", "there is no view 'ordrs' -> did you mean orders?"),
        ("{sql: DELETE FROM orders}", "a step's SQL is a query, not DELETE"),
        ("{sql: SELECT 1; SELECT 2}", "a step has one query"),
        ("{sql: 'SELECT (1'}", "this is no SQL: '(' is not closed"),
        ("{sql_file: nothing.sql}", "nothing.sql cannot be read: no such file or directory"),
        ("{python: nothing.py:f, from: orders}", "there is no file nothing.py"),
        ("{python: json:dumpp, from: orders}", "there is no dumpp in json -> did you mean dump?"),
        ("{python: nothing_such:f, from: orders}", "there is no module nothing_such"),
        ("{python: f, from: orders}", "'f' is no function -> write file.py:function"),
        ("{python: 'json:dumps', from: odrers}", "there is no view 'odrers'"),
        ("{watermark: at, delay: x, from: orders}", "'x' is no span of time"),
        ("{deduplicate: id, from: plain}", "plain has no watermark, so no key could ever be forgotten"),
        ("{aggregate: {n: 'count('}, from: orders}", "this is no SQL"),
        ("{aggregate: {n: count(*)}, window: {column: at}, from: orders}", "a window needs either a size or"),
        ("{aggregate: {id: count(*)}, by: [id], from: orders}", "there would be two columns id"),
        ("{join: [orders], on: id}", "a join has two views, not 1"),
        ("{join: [orders, orders], on: id}", "a view cannot be joined with itself"),
        ("{join: [orders, plaine], on: id}", "there is no view 'plaine' -> did you mean plain?"),
        ("{sql: SELECT * FROM made}", "it reads itself: made -> made"),
        ("{stateful: 'json:JSONEncoder', from: orders, by: [id], schema: n INTT}", "there is no type INTT"),
    ],
)
def test_mistakes_in_a_step(step: str, message: str) -> None:
    (line,) = _problems(_with(step=step))
    assert message in line


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("{from: onne, topic: o}", "there is no view 'onne' -> did you mean one?"),
        (
            "{from: one, topic: orders}",
            "orders reads orders: the pipeline would read what it writes for ever",
        ),
        ("{from: one, topic: p.dead}", "p.dead is the topic of the dead letters"),
        ("{from: one, topic: o, trigger: often}", "'often' is no trigger"),
        ("{from: one, topic: o, key: 'f('}", "this is no SQL"),
        ("{from: one, topic: o, encode: avro}", "avro needs schema_file"),
        ("{from: one, iceberg: orders}", "'orders' has no namespace -> write NAMESPACE.orders"),
        ("{from: one, jdbc: nonsense, table: t}", "is no address of a database"),
        ("{from: one, jdbc: 'oracl://h/d', table: t}", "oracl is no known kind of database"),
        (
            "{from: one, jdbc: 'sqlite:///x.db', table: t, mode: update}",
            "rows can be updated only by their keys",
        ),
        ("{from: one, jdbc: 'jdbc:postgresql://h/d', table: t, jar: no.jar}", "there is no no.jar"),
        (
            "{from: one, jdbc: 'x://h/d', driver: no_such_driver, table: t}",
            "needs the Python package no_such_",
        ),
        ("{from: one, console: 0}", "show at least one row"),
        ("{from: one, python: nothing.py:f}", "there is no file nothing.py"),
    ],
)
def test_mistakes_in_a_sink(sink: str, message: str) -> None:
    (line,) = _problems(_with(sink=sink))
    assert message in line


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
    (line,) = _problems(_with(top=top))
    assert message in line


def test_cycles_of_several_steps_are_shown_whole() -> None:
    text = BASE.replace(
        "sinks:\n", "  a: SELECT * FROM c\n  b: SELECT * FROM a\n  c: SELECT * FROM B\nsinks:\n", 1
    )
    assert _problems(text) == [":13:3: steps.a: it reads itself: a -> c -> b -> a"]


def test_windows_further_apart_than_they_are_long() -> None:
    def told_of(slide: str) -> list[str]:
        window = f"{{column: at, size: 1 minute, slide: {slide}}}"
        return _problems(_with(step=f"{{from: one, aggregate: {{n: count(*)}}, window: {window}}}"))

    (problem,) = told_of("5 minutes")
    assert "windows of 1 minute that are 5 minutes apart" in problem
    assert told_of("30 s") == []


def test_two_sinks_must_not_share_a_folder() -> None:
    text = BASE + "  a: {from: one, parquet: ./x}\n  b: {from: one, parquet: ./x/}\n"
    assert _problems(text) == [":16:27: sinks.b: a writes there already -> give each its own place"]


def test_names_of_views_are_compared_as_sql_does() -> None:
    assert _problems(_with(step="{sql: SELECT * FROM ORDERS}")) == []
    (line,) = _problems(BASE.replace("  one: SELECT", "  Orders: SELECT 1\n  one: SELECT"))
    assert "there is a view 'Orders' in sources already" in line
    (line,) = _problems(BASE.replace("  one: SELECT", "  a-b: SELECT 1\n  one: SELECT"))
    assert "'a-b' is no name for a view" in line


def test_files_that_a_pipeline_names_are_read(tmp_path: Path) -> None:
    (tmp_path / "schema.ddl").write_text("id BIGINT,\n at TIMESTAMP")
    (tmp_path / "query.sql").write_text("SELECT * FROM extra")
    (tmp_path / "extra_functions.py").write_text("def clean(frame):\n    return frame\n")
    (tmp_path / "broken_functions.py").write_text("import no_such_module_anywhere\n")
    source = "{topic: a, decode: {format: json, schema_file: schema.ddl}, watermark: {column: at, delay: 1m}}"
    text = _with(source=source, step="{sql_file: query.sql}")
    assert _problems(text, tmp_path) == []
    assert _problems(_with(step="{python: extra_functions.py:clean, from: one}"), tmp_path) == []
    assert _problems(_with(step="{python: 'extra_functions:clean', from: one}"), tmp_path) == []
    (line,) = _problems(_with(step="{python: extra_functions.py:cleen, from: one}"), tmp_path)
    assert "there is no cleen in extra_functions.py -> did you mean clean?" in line
    (line,) = _problems(_with(step="{python: broken_functions.py:f, from: one}"), tmp_path)
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
    text = _with(step="{sql_file: query.sql}")
    (line,) = _problems(text, tmp_path)
    row = next(number for number, each in enumerate(text.splitlines(), 1) if "query.sql" in each)
    assert line.startswith(f":{row}:20: steps.made: {told}")


def test_a_file_may_have_the_name_of_a_module_of_python(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("def clean(frame):\n    return frame\n")
    assert _problems(_with(step="{python: json.py:clean, from: one}"), tmp_path) == []
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
    (problem,) = _problems(own.replace("PATTERN", pattern))
    assert problem.startswith(f":{line}:14: sources.all: {message} -> a pattern is searched for anywhere")
    assert _problems(own.replace("PATTERN", "^orders$")) == []
    # On another cluster there may be topics of the same name.
    assert _problems(text.replace("PATTERN", pattern)) == []
