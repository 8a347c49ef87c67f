"""The broker's log: one line for each event, with what it is about."""

import io
import json
import logging
from typing import Any

import pytest

from mainstem.logs import about
from mainstem.logs.flood import FloodGuard
from mainstem.logs.formatters import HumanFormatter, JsonFormatter
from mainstem.protocol.errors import ErrorCode, KafkaError


class Place:
    """Looks like a partition."""

    topic = "orders"
    index = 3

    def __repr__(self) -> str:
        return "orders-3"


class Log:
    """A logger of its own and what it has written."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self.stream = io.StringIO()
        handler = logging.StreamHandler(self.stream)
        handler.setFormatter(formatter)
        handler.addFilter(FloodGuard())
        self.logger = logging.Logger("mainstem.test")
        self.logger.addHandler(handler)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().split("\n")[:-1]

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def as_json() -> Log:
    return Log(JsonFormatter())


@pytest.fixture
def for_people() -> Log:
    return Log(HumanFormatter())


def test_an_event_says_what_it_is_about(as_json: Log) -> None:
    as_json.logger.warning(
        "deleting %d segments of %s", 2, "orders-3", extra=about(Place(), offset=17, cause="retention.ms")
    )
    (event,) = as_json.events()
    assert event.pop("time").endswith("+00:00")
    assert event == {
        "level": "warning",
        "logger": "mainstem.test",
        "message": "deleting 2 segments of orders-3",
        "topic": "orders",
        "partition": 3,
        "offset": 17,
        "cause": "retention.ms",
    }


def test_partitions_and_errors_among_the_arguments_are_fields_too(as_json: Log) -> None:
    as_json.logger.error(
        "cannot flush %s: %s", Place(), KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")
    )
    (event,) = as_json.events()
    assert (event["topic"], event["partition"]) == ("orders", 3)
    assert event["cause"] == "KAFKA_STORAGE_ERROR: the disk is gone"
    assert event["error"] == "KAFKA_STORAGE_ERROR"


def test_the_folder_of_a_partition_names_it(as_json: Log) -> None:
    as_json.logger.warning("cut", extra=about(folder="/data/my-topic-12/"))
    as_json.logger.warning("cut", extra=about(folder="/data/something"))
    first, second = as_json.events()
    assert (first["topic"], first["partition"]) == ("my-topic", 12)
    assert second["folder"] == "/data/something"


def test_a_traceback_stays_in_its_line_of_json(as_json: Log) -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        as_json.logger.exception("it failed")
    (event,) = as_json.events()
    assert event["cause"] == "two\nlines"
    assert event["error"] == "ValueError"
    assert "Traceback" in event["traceback"]


def test_people_read_a_line(for_people: Log) -> None:
    for_people.logger.warning("cannot flush %s", Place(), extra=about(Place(), offset=1))
    (line,) = for_people.lines
    assert line[2] == line[5] == ":"
    assert line[8:] == " WARNING cannot flush orders-3"


def test_a_traceback_is_indented_below_the_line_of_its_event(for_people: Log) -> None:
    try:
        raise ValueError("no\nway")
    except ValueError:
        for_people.logger.exception("it failed")
    first, *trace = for_people.lines
    assert first.endswith("ERROR it failed")
    assert trace
    assert all(line.startswith("    ") for line in trace)


HOSTILE = "name\n2026 ERROR forged\x1b[2J\r\x00\x9b\u2028\ud800"


@pytest.mark.parametrize("formatter", [HumanFormatter(), JsonFormatter()])
def test_what_a_client_sends_cannot_forge_a_line_or_command_a_terminal(formatter: logging.Formatter) -> None:
    log = Log(formatter)
    log.logger.warning("closing %s", HOSTILE, extra=about(client=HOSTILE))
    (line,) = log.lines
    assert not set(line) & set("\r\x00\x1b")
    assert "forged" in line
    line.encode()


def test_a_client_cannot_fill_the_log(as_json: Log) -> None:
    for number in range(1000):
        as_json.logger.warning("closing %s", "10.0.0.1", extra=about(client="10.0.0.1", number=number))
    assert len(as_json.lines) < 50


def test_what_is_left_out_is_counted_when_the_next_is_shown() -> None:
    guard = FloodGuard()

    def shown(at_seconds: float) -> logging.LogRecord | None:
        record = logging.LogRecord("x", logging.WARNING, "a.py", 1, "closing", (), None)
        record.created = at_seconds
        record.about = {"client": "10.0.0.1"}
        return record if guard.filter(record) else None

    first = [shown(100.0 + number / 100) for number in range(100)]
    assert first[0] is not None
    assert first[-1] is None
    later = shown(120.0)
    assert later is not None
    assert later.__dict__["left_out"] == sum(record is None for record in first)
    assert "left_out" in json.loads(JsonFormatter().format(later))
    assert "more of this kind" in HumanFormatter().format(later)


def test_what_says_something_about_data_is_always_shown(as_json: Log) -> None:
    for number in range(1000):
        as_json.logger.warning("cutting bytes off", extra=about(Place(), offset=number))
    assert len(as_json.lines) == 1000
