"""`mainstem transactions list`, `describe`, `describe-producers` and `fence` against a real broker."""

import json
import time
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mainstem.testing import Broker
from mainstem.wire import Connection
from tests.cli.conftest import Mainstem
from tests.cli.open_transactions import LONG_AGO_MS, committed_end, open_transaction, producer, write
from tests.support.target import unique_name


@pytest.fixture
def topic(mainstem: Mainstem) -> str:
    """Records of 2001 stay in it."""
    name = unique_name("payments")
    created = mainstem("topics", "create", name, "--partitions", "3", "--config", "retention.ms=-1")
    assert created.returncode == 0
    return name


def described(mainstem: Mainstem, transactional_id: str) -> dict[str, Any]:
    printed = mainstem("transactions", "describe", transactional_id, "--json")
    assert printed.returncode == 0, printed.stderr
    (found,) = json.loads(printed.stdout)
    return found


def test_an_open_transaction_is_listed_and_described(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    name = unique_name("billing")
    before_ms = time.time() * 1000
    writer = open_transaction(broker.bootstrap_servers, name, topic, (0, 2))
    found = described(mainstem, name)
    assert (found["transactional_id"], found["state"], found["timeout_ms"]) == (name, "Ongoing", 300_000)
    assert found["partitions"] == [{"topic": topic, "partition": 0}, {"topic": topic, "partition": 2}]
    assert before_ms - 1000 < found["start_time_ms"] < time.time() * 1000 + 1000
    assert found["duration_ms"] is not None

    header, row = mainstem("transactions", "describe", "--transactional-id", name).stdout.splitlines()
    assert header.split("  ")[0] == "transactional id"
    assert row.split()[:4] == [name, "Ongoing", str(found["producer_id"]), str(found["producer_epoch"])]
    assert row.endswith(f"  5m00s    {broker.host}:{broker.port} (1)  {topic}:0,2")

    writer.commit_transaction(60)
    over = described(mainstem, name)
    assert (over["state"], over["partitions"], over["start_time_ms"]) == ("CompleteCommit", [], None)
    write(writer, topic)
    writer.abort_transaction(60)
    assert described(mainstem, name)["state"] == "CompleteAbort"


def test_the_list_can_be_filtered(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    name, idle = unique_name("filtered"), unique_name("idle")
    writer = open_transaction(broker.bootstrap_servers, name, topic)
    producer(broker.bootstrap_servers, idle)

    def listed(*options: str) -> set[str]:
        done = mainstem("transactions", "list", *options)
        assert done.returncode == 0, done.stderr
        return {name, idle} & set(done.stdout.splitlines())

    producer_id = described(mainstem, name)["producer_id"]
    assert listed() == {name, idle}
    assert listed("--state", "ongoing") == {name}
    assert listed("--state", "Empty,CompleteAbort") == {idle}
    assert listed("--producer-id", str(producer_id)) == {name}
    assert listed("--transactional-id-pattern", "id.e-.*") == {idle}
    assert listed("--transactional-id-pattern", "dle-") == set()
    assert listed("--duration-filter", "5m") == set()
    assert listed("--duration-filter", "0") == {name}
    assert listed("--duration-filter", "-1") == {name, idle}
    found = json.loads(mainstem("transactions", "list", "--producer-id", str(producer_id), "--json").stdout)
    assert found == [
        {"transactional_id": name, "state": "Ongoing", "producer_id": producer_id, "coordinator_id": 1}
    ]
    nothing = mainstem("transactions", "list", "--state", "Dead")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "no such transactional ids\n")
    writer.abort_transaction(60)


def test_the_producers_of_a_partition_are_shown(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    name = unique_name("producers")
    writer = open_transaction(broker.bootstrap_servers, name, topic, (0, 1))
    transaction = described(mainstem, name)
    arguments = ("transactions", "describe-producers", "--topic", topic, "--partition")
    (found,) = json.loads(mainstem(*arguments, "1", "--json").stdout)
    assert found == {
        "topic": topic,
        "partition": 1,
        "producer_id": transaction["producer_id"],
        "producer_epoch": transaction["producer_epoch"],
        "coordinator_epoch": -1,
        "last_sequence": 0,
        "last_timestamp_ms": LONG_AGO_MS,
        "start_offset": 0,
    }
    header, row = mainstem(*arguments, "1", "--broker-id", "1").stdout.splitlines()
    assert header.endswith("last sequence  last written                   open from")
    assert row.split()[0] == str(transaction["producer_id"])
    assert mainstem(*arguments, "2").stderr == f"{topic}-2 remembers no producer\n"
    writer.abort_transaction(60)
    (ended,) = json.loads(mainstem(*arguments, "1", "--json").stdout)
    assert (ended["start_offset"], ended["coordinator_epoch"] >= 0) == (None, True)
    assert mainstem(*arguments, "1").stdout.splitlines()[1].endswith("  -")


def test_a_fenced_producer_can_write_no_more(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    name, absent = unique_name("fenced"), unique_name("absent")
    writer = open_transaction(broker.bootstrap_servers, name, topic)
    before = described(mainstem, name)
    done = mainstem("transactions", "fence", name, absent)
    assert done.returncode == 1
    after = described(mainstem, name)
    producer_id, epoch = after["producer_id"], after["producer_epoch"]
    assert done.stdout == f"fenced {name}: producer {producer_id} goes on with epoch {epoch}\n"
    assert done.stderr.splitlines()[:2] == [
        f"not fenced: there is no transactional id '{absent}'",
        "mainstem: 1 of 2 ids are not fenced",
    ]
    assert (after["state"], after["partitions"], after["timeout_ms"]) == ("Empty", [], 300_000)
    assert (producer_id, epoch) > (before["producer_id"], before["producer_epoch"])
    with pytest.raises(KafkaException) as raised:
        writer.commit_transaction(60)
    assert raised.value.args[0].code() == KafkaError._FENCED
    # The record and the marker that aborts it.
    assert committed_end(broker.bootstrap_servers, topic) == 2
    assert mainstem("transactions", "fence", name, "--yes").returncode == 0


def test_a_transaction_that_does_not_hang_is_left_to_its_coordinator(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    name = unique_name("known")
    writer = open_transaction(broker.bootstrap_servers, name, topic)
    where = ("--topic", topic, "--partition", "0")
    assert mainstem("transactions", "find-hanging", *where).stderr == "no hanging transactions\n"
    refused = mainstem("transactions", "abort", *where, "--start-offset", "0")
    assert refused.returncode == 1
    message, hint = refused.stderr.splitlines()
    assert message.startswith(f"mainstem: the transaction of {name} is not hanging")
    assert f"mainstem transactions fence {name}" in hint
    writer.commit_transaction(60)


def test_what_is_not_there_is_named(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    name = unique_name("spelling")
    producer(broker.bootstrap_servers, name)
    partition = ("--topic", topic, "--partition")
    cases = {
        ("describe", f"{name}x"): f"there is no transactional id '{name}x'\n  -> did you mean {name}?",
        ("describe-producers", "--topic", f"{topic}x", "--partition", "0"): f"there is no topic '{topic}x'",
        ("describe-producers", *partition, "3"): f"{topic} has no partition 3\n  -> it has 0 to 2",
        ("find-hanging", "--broker-id", "7"): "there is no broker 7\n  -> there are: 1",
        ("find-hanging", "--topic", f"{topic}x"): f"there is no topic '{topic}x'",
        ("abort", *partition, "0", "--start-offset", "5"): (
            f"no transaction in {topic}-0 is open from offset 5\n  -> no transaction is open there"
        ),
        ("list", "--transactional-id-pattern", "("): "list the transactions: ",
    }
    for arguments, message in cases.items():
        result = mainstem("transactions", *arguments)
        assert result.returncode == 1
        assert result.stderr.startswith(f"mainstem: {message}"), result.stderr
        assert "\n  -> " in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "--state", "sleepy"), "--state 'sleepy' is not known"),
        (("list", "--duration-filter", "soon"), "'soon' is not a length of time"),
        (("find-hanging", "--partition", "3"), "--partition 3 of which topic?"),
        (("abort", "--topic", "t", "--partition", "0"), "which transaction?"),
        (
            ("abort", "--topic", "t", "--partition", "0", "--start-offset", "1", "--producer-id", "1"),
            "--start-offset names the transaction already",
        ),
        (("abort", "--topic", "t", "--partition", "0", "--producer-id", "1"), "which transaction?"),
    ],
)
def test_a_wrong_command_line_says_what_to_write(
    mainstem: Mainstem, arguments: tuple[str, ...], message: str
) -> None:
    result = mainstem("transactions", *arguments)
    assert result.returncode == 2
    assert result.stderr.startswith(f"mainstem: {message}"), result.stderr
    assert "\n  -> " in result.stderr


def test_a_broker_that_cannot_filter_is_not_asked_to(
    mainstem: Mainstem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would list everything, as if all of it had been asked for."""
    monkeypatch.setattr(Connection, "version_of", lambda *_: 0)
    for option, value in (("--duration-filter", "1m"), ("--transactional-id-pattern", "a.*")):
        result = mainstem("transactions", "list", option, value)
        assert result.returncode == 1
        assert result.stderr == f"mainstem: the broker is too old for {option}\n  -> leave {option} out\n"
    assert mainstem("transactions", "list").returncode == 0


def test_no_broker_says_how_to_start_one(mainstem: Mainstem) -> None:
    for command in (("list",), ("describe",), ("find-hanging",), ("fence", "x")):
        result = mainstem("transactions", *command, "-b", "localhost:1")
        assert result.returncode == 1
        assert result.stderr.startswith("mainstem: no broker answers at localhost:1 (")


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--producer-id", "99999999999999999999"),
        ("describe-producers", "--topic", "t", "--partition", "99999999999999999999"),
        ("abort", "--topic", "t", "--partition", "0", "--producer-id", "99999999999999999999"),
        ("abort", "--topic", "t", "--partition", "0", "--coordinator-epoch", "99999999999999999999"),
    ],
    ids=" ".join,
)
def test_a_number_without_reason_is_refused_in_one_line(
    mainstem: Mainstem, arguments: tuple[str, ...]
) -> None:
    refused = mainstem("transactions", *arguments)
    assert refused.returncode in (1, 2)
    assert refused.stderr.startswith("mainstem: ")
    assert len(refused.stderr.splitlines()) == 2


def test_a_duration_without_reason_is_longer_than_every_transaction(mainstem: Mainstem) -> None:
    listed = mainstem("transactions", "list", "--duration-filter", "99999999999999999999")
    assert (listed.returncode, listed.stderr) == (0, "no such transactional ids\n")
