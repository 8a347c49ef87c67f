"""`mainstem transactions find-hanging` and `abort`, on a broker that lets transactions hang."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mainstem.cli.transactions.hanging import forgotten
from mainstem.cli.transactions.requests import ProducerFacts, TransactionFacts
from mainstem.testing import Broker
from tests.cli.command import run_command
from tests.cli.conftest import Mainstem
from tests.cli.open_transactions import (
    LETS_HANG,
    LONG_AGO_MS,
    committed_end,
    leave_hanging,
    open_transaction,
)
from tests.support.target import unique_name


@pytest.fixture(scope="module")
def lenient() -> Iterator[Broker]:
    with Broker(config=LETS_HANG) as running:
        yield running


@pytest.fixture
def servers(lenient: Broker) -> str:
    return lenient.bootstrap_servers


@pytest.fixture
def mainstem(servers: str) -> Mainstem:
    return lambda *arguments: run_command(*arguments, environment={"MAINSTEM_BOOTSTRAP": servers})


@pytest.fixture
def topic(mainstem: Mainstem) -> str:
    name = unique_name("hanging")
    created = mainstem("topics", "create", name, "--partitions", "2", "--config", "retention.ms=-1")
    assert created.returncode == 0, created.stderr
    return name


@pytest.fixture
def find(mainstem: Mainstem, topic: str) -> Callable[..., list[dict[str, Any]]]:
    def find(*options: str) -> list[dict[str, Any]]:
        done = mainstem("transactions", "find-hanging", "--json", "--topic", topic, *options)
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    return find


def test_a_hanging_transaction_is_found_and_aborted(
    servers: str, mainstem: Mainstem, topic: str, find: Callable[..., list[dict[str, Any]]]
) -> None:
    writer = open_transaction(servers, unique_name("known"), topic, (0, 1))
    producer_id = leave_hanging(servers, topic, 1)
    facts = {
        "topic": topic,
        "partition": 1,
        "producer_id": producer_id,
        "producer_epoch": 0,
        "coordinator_epoch": -1,
        "last_sequence": 0,
        "last_timestamp_ms": LONG_AGO_MS,
        "start_offset": 1,
    }
    assert find() == find("--partition", "1") == find("--broker-id", "1") == [facts]
    assert find("--partition", "0") == []
    shown = mainstem("transactions", "find-hanging")
    header, *rows = shown.stdout.splitlines()
    assert header.split()[:4] == ["topic", "partition", "producer", "epoch"]
    assert [row.split()[:6] for row in rows if row.startswith(f"{topic} ")] == [
        [topic, "1", str(producer_id), "0", "-1", "1"]
    ]
    assert shown.stderr.startswith("abort one with: ")

    writer.commit_transaction(60)
    assert committed_end(servers, topic, 1) == 1
    abort = ("transactions", "abort", "--topic", topic, "--partition", "1")
    wrong = mainstem(*abort, "--start-offset", "0")
    assert wrong.stderr == (
        f"mainstem: no transaction in {topic}-1 is open from offset 0\n  -> those that are open begin at 1\n"
    )
    done = mainstem(*abort, "--start-offset", "1")
    line = f"aborted the transaction of producer {producer_id} in {topic}-1\n"
    assert (done.returncode, done.stdout) == (0, line), done.stderr
    assert find() == []
    # Two records and two markers.
    assert committed_end(servers, topic, 1) == 4


def test_a_transaction_is_aborted_by_its_producer(servers: str, mainstem: Mainstem, topic: str) -> None:
    producer_id = leave_hanging(servers, topic)
    named = ("--producer-id", str(producer_id), "--producer-epoch", "0", "--coordinator-epoch", "-1")
    done = mainstem("transactions", "abort", "--topic", topic, "--partition", "0", *named)
    assert (done.returncode, committed_end(servers, topic)) == (0, 2), done.stderr


def test_a_young_transaction_is_not_suspected(
    servers: str, topic: str, find: Callable[..., list[dict[str, Any]]]
) -> None:
    leave_hanging(servers, topic, timestamp_ms=int(time.time() * 1000))
    assert find("--max-transaction-timeout", "15") == []


def test_only_what_no_coordinator_knows_hangs() -> None:
    known = TransactionFacts("id", "Ongoing", 1, 0, 1000, 0, "host:1", 1, [("t", 0)])
    over = known._replace(transactional_id="over", producer_id=2, partitions=[])
    producers = [
        ProducerFacts(*where, producer_id, 0, 0, 0, 0, 5)
        for producer_id, where in ((1, ("t", 0)), (1, ("t", 1)), (2, ("t", 0)), (3, ("t", 0)), (4, ("t", 0)))
    ]
    # 3 has an id that was removed since, 4 never had one.
    ids = {1: "id", 2: "over", 3: "gone"}
    found = forgotten(producers, ids, {"id": known, "over": over})
    assert [(facts.producer_id, facts.partition) for facts in found] == [(1, 1), (2, 0), (3, 0), (4, 0)]
