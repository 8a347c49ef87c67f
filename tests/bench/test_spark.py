"""The Spark phases: asking a program for work, what it answers, what is made of the answers. No timing."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bench.errors import BenchError
from bench.phases.spark import growth_percent, memory_of_spark
from bench.spark.asking import OURS, SPARKS, Spark
from bench.spark.program import Work, answer_of
from bench.stats import Target
from mainstem.testing import Broker
from tests.support.spark import spark_session
from tests.support.target import unique_name

_PARTITIONS = 4
_ECHO = """
import json, sys, time
for line in sys.stdin:
    request = json.loads(line)
    if request["work"] == "end":
        sys.exit("over and out")
    time.sleep(request.get("pause", 0))
    print(json.dumps(request), flush=True)
"""


@pytest.fixture
def echo() -> Iterator[Spark]:
    """A program that answers with what it was asked."""
    program = Spark([sys.executable, "-c", _ECHO])
    yield program
    program.close()


def test_work_is_asked_for_and_watched(echo: Spark) -> None:
    seen: list[int] = []
    answer = echo.watch(lambda: seen.append(echo.pid), 0.01, "read", topic="t", pause=0.2)
    assert answer == {"work": "read", "topic": "t", "pause": 0.2}
    assert set(seen) == {echo.pid}
    assert echo.ask("count", topic="u") == {"work": "count", "topic": "u"}


def test_a_failure_is_told(echo: Spark) -> None:
    with pytest.raises(BenchError, match="no such topic"):
        echo.ask("read", error="no such topic")
    with pytest.raises(BenchError, match="Spark has ended: over and out"):
        echo.ask("end")


def test_what_a_piece_of_work_raises_is_its_answer() -> None:
    def fail(topic: str) -> dict[str, Any]:
        raise ValueError(f"no\n  {topic}")

    work: dict[str, Callable[..., dict[str, Any]]] = {
        "fail": fail,
        "count": lambda topic: {"rows": len(topic)},
    }
    assert answer_of(work, '{"work": "count", "topic": "abc"}') == {"rows": 3}
    assert answer_of(work, '{"work": "fail", "topic": "abc"}') == {"error": "no abc"}
    assert "error" in answer_of(work, '{"work": "unknown"}')


def test_growth_is_that_of_the_second_half() -> None:
    assert growth_percent((50.0, 100.0, 90.0, 110.0)) == pytest.approx(10)
    assert growth_percent((100.0, 80.0)) == pytest.approx(-20)
    assert growth_percent((0.0, 80.0)) == 0.0


def test_memory_is_that_of_the_driver_and_of_the_workers() -> None:
    waiting = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        driver_mb, workers_mb = memory_of_spark(os.getpid())
        worker.communicate(b"\n", timeout=30)
    assert driver_mb > 1
    assert workers_mb > 1


def test_a_target_for_each_broker_is_judged_on_the_worse() -> None:
    assert Target("each_min", 2.0).is_met(value=3.0, ratio=1.5, kafka=2.0) is True
    assert Target("each_min", 2.0).is_met(value=3.0, ratio=1.6, kafka=1.9) is False
    assert Target("each_max", 2.0).is_met(value=1.0, ratio=0.5, kafka=2.1) is False
    assert Target("each_max", 2.0).is_met(value=1.0, ratio=None) is None
    assert Target("each_min", 2.5).text("x") == ">= 2.5 x"


@pytest.mark.timeout(300)
def test_both_connectors_do_all_of_the_work(tmp_path: Path) -> None:
    work = Work(spark_session(), tmp_path)
    with Broker() as broker:
        name = unique_name()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(name, _PARTITIONS, 1)])[name].result(timeout=30)
        for number, connector in enumerate((OURS, SPARKS), start=1):
            where = {"connector": connector, "bootstrap": broker.bootstrap_servers, "topic": name}
            work.write(connector, broker.bootstrap_servers, name, 100, 10)
            assert work.count(**where) == {"rows": number * 100}
            assert work.read(**where)["seconds"] > 0
            assert work.stream(**where)["rows"] == number * 100
