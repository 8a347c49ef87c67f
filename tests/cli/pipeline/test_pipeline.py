"""`mainstem pipeline` as a person uses it, without Spark: init, validate, explain, status, stop."""

import json
import re
from pathlib import Path

import pytest

from mainstem.spark.pipeline.metrics.progress import QueryMetrics, Snapshot, TopicLag
from mainstem.spark.pipeline.running import registration
from mainstem.testing import Broker
from tests.cli.command import run_command
from tests.cli.conftest import Mainstem
from tests.support.target import Target
from tests.wire.secured_kafka import secured_ports
from tests.wire.token_logins import TOKEN, without_prefix

COMMANDS = ("init", "validate", "explain", "run", "status", "stop", "replay-dead-letters")
BAD = """\
pipeline: orders
sources:
  orders: {topic: orders, rate: many, decode: {schema: id BIGNT}}
steps:
  big: SELECT * FROM order
sinks:
  out: {from: bigg, topic: out}
"""


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself_with_examples(command: str) -> None:
    shown = run_command("pipeline", command, "--help")
    assert shown.returncode == 0, shown.stderr
    assert f"Usage: mainstem pipeline {command}" in shown.stdout
    assert f"mainstem pipeline {command}" in shown.stdout.partition("Examples")[2]
    assert re.search(r"^   \S", shown.stdout.partition("Examples")[2], re.M)


def test_init_writes_a_file_without_mistakes() -> None:
    made = run_command("pipeline", "init", "orders.yaml")
    assert (made.returncode, made.stdout) == (0, "wrote orders.yaml\n")
    checked = run_command("pipeline", "validate", "orders.yaml", "--no-sql")
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout == "orders.yaml: no mistakes in orders (1 sources, 1 steps, 2 sinks)\n"
    again = run_command("pipeline", "init", "orders.yaml")
    assert again.returncode == 1
    assert "orders.yaml is there already" in again.stderr
    assert run_command("pipeline", "init", "orders.yaml", "--force").returncode == 0


def test_init_takes_the_schema_from_a_topic(mainstem: Mainstem, broker: Broker) -> None:
    lines = '{"id": 1, "when": "2026-01-31T12:00:00Z", "odd name": {"x": 1.5}}\n'
    mainstem("topics", "create", "pipeline-init")
    assert mainstem("produce", "pipeline-init", stdin=lines * 3).returncode == 0
    made = mainstem("pipeline", "init", "p.yaml", "--topic", "pipeline-init")
    assert made.returncode == 0, made.stderr
    text = Path("p.yaml").read_text()
    assert "id BIGINT,\n        when TIMESTAMP,\n        `odd name` STRUCT<x: DOUBLE>" in text
    assert "watermark: {column: when, delay: 10 minutes}" in text
    assert run_command("pipeline", "validate", "p.yaml", "--no-sql").returncode == 0
    missing = mainstem("pipeline", "init", "q.yaml", "--topic", "pipeline-int")
    assert missing.returncode == 1
    assert "there is no topic 'pipeline-int'" in missing.stderr
    assert "did you mean pipeline-init?" in missing.stderr


@pytest.mark.peer
def test_init_reads_with_the_login_of_the_command(mainstem: Mainstem) -> None:
    kafka = Target("kafka", f"127.0.0.1:{secured_ports()['PLAINTEXT']}", Path())
    topic = kafka.create_topic()
    produced = mainstem("produce", topic, "-b", kafka.bootstrap_servers, stdin='{"id": 1}\n')
    assert produced.returncode == 0, produced.stderr
    servers = f"127.0.0.1:{secured_ports()['TOKEN']}"
    login = [f"--command-property={name}={value}" for name, value in without_prefix(TOKEN).items()]
    made = mainstem("pipeline", "init", "p.yaml", "--topic", topic, "-b", servers, *login)
    assert made.returncode == 0, made.stderr
    assert "id BIGINT" in Path("p.yaml").read_text()


def test_validate_shows_every_mistake_with_its_place() -> None:
    Path("bad.yaml").write_text(BAD)
    shown = run_command("pipeline", "validate", "bad.yaml", "--no-sql")
    assert shown.returncode == 1
    assert shown.stderr.splitlines() == [
        "bad.yaml:3:33: sources.orders: must be a whole number, not 'many'",
        "bad.yaml:3:59: sources.orders: there is no type BIGNT",
        "  -> did you mean bigint?",
        "bad.yaml:5:22: steps.big: there is no view 'order'",
        "  -> did you mean orders?",
        "bad.yaml:7:15: sinks.out: there is no view 'bigg'",
        "  -> did you mean big?",
        "with --no-sql, SQL and columns are not checked",
        "mainstem: 4 mistakes in bad.yaml",
    ]


def test_validate_prints_json_for_an_editor() -> None:
    Path("bad.yaml").write_text(BAD)
    shown = run_command("pipeline", "validate", "bad.yaml", "--no-sql", "--json")
    first = json.loads(shown.stdout)[0]
    assert (first["line"], first["column"], first["path"]) == (3, 33, "sources.orders.rate")


def test_a_file_that_is_not_there() -> None:
    Path("orders.yaml").write_text(BAD)
    shown = run_command("pipeline", "validate", "order.yaml")
    assert shown.stderr == "mainstem: there is no file order.yaml\n  -> did you mean orders.yaml?\n"
    assert "pipeline init" in run_command("pipeline", "run", "x").stderr


def test_explain_without_spark_draws_a_diagram() -> None:
    run_command("pipeline", "init", "orders.yaml")
    shown = run_command("pipeline", "explain", "orders.yaml", "--no-spark")
    assert shown.returncode == 0, shown.stderr
    assert "└─ chosen: sql SELECT id, product, amount, at FROM orders" in shown.stdout
    assert "to_topic ==> topic orders-chosen, json, exactly once" in shown.stdout


def test_run_refuses_a_file_with_mistakes() -> None:
    Path("bad.yaml").write_text(BAD)
    shown = run_command("pipeline", "run", "bad.yaml")
    assert shown.returncode == 1
    assert "bad.yaml:3:33:" in shown.stderr


def test_status_and_stop() -> None:
    assert "no pipeline was started here" in run_command("pipeline", "status").stderr
    state = registration.State("orders", 1, "p.yaml", "local[*]", "cp", "g", "p.log", phase="running")
    queries = [
        QueryMetrics("dead-letters.orders", rows_in=10, rows_out=3, records_read={"orders": 10}),
        QueryMetrics("out", rows_in=12, rows_out=9, records_read={"orders": 8, "payments": 4}),
        QueryMetrics("paid", rows_in=5, rows_out=5, records_read={"payments": 5}),
    ]
    state.snapshot = Snapshot("orders", queries, [TopicLag("t", 5, 2.0)])
    with registration.Registration(state):
        shown = run_command("pipeline", "status")
        assert re.search(r"orders +running +15 +14 +3 +5 +2 s", shown.stdout), shown.stdout
        (entry,) = json.loads(run_command("pipeline", "status", "orders", "--json").stdout)
        assert entry["running"] is True
        assert entry["snapshot"]["records_read"] == 15
        assert entry["snapshot"]["lags"] == [{"topic": "t", "records": 5, "seconds": 2.0}]
    assert "died" in run_command("pipeline", "status").stdout
    assert "orders is not running" in run_command("pipeline", "stop", "orders").stderr
    wrong = run_command("pipeline", "stop", "order")
    assert wrong.returncode == 1
    assert "did you mean orders?" in wrong.stderr


def test_the_same_pipeline_does_not_run_twice() -> None:
    run_command("pipeline", "init", "orders.yaml")
    with registration.Registration(registration.State("orders", 1, "p.yaml", "local[*]", "cp", "g", "p.log")):
        shown = run_command("pipeline", "run", "orders.yaml")
    assert shown.returncode == 1
    assert "the pipeline orders is running already (process 1)" in shown.stderr
