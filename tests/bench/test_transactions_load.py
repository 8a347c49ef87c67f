"""The generators that stand on librdkafka do what they say. No timing.

They need the library that `bench/run` builds once; where it was never run there is nothing to link with.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, NewTopic

from bench import tools
from bench.tools import compile_command
from mainstem.testing import Broker
from tests.cli.open_transactions import committed_end
from tests.support.target import unique_name

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or not tools.library_path().exists(), reason="bench/run was not used here"
)

_PARTITIONS = 4

Load = Callable[..., dict[str, float]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = unique_name()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, _PARTITIONS, 1)])[name].result(timeout=30)
    return name


@pytest.fixture
def load(broker: Broker, topic: str, tmp_path: Path) -> Load:
    """Compiles a generator and runs it on the topic."""

    def load(name: str, *arguments: str) -> dict[str, float]:
        program = tmp_path / name
        subprocess.run(compile_command(name, program, with_librdkafka=True), check=True, timeout=60)
        where = ["--port", str(broker.port), "--topic", topic]
        done = subprocess.run(
            [program, *where, *arguments], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        fields: dict[str, float] = json.loads(done.stdout)
        return fields

    return load


def _ends(broker: Broker, topic: str) -> list[int]:
    return [committed_end(broker.bootstrap_servers, topic, partition) for partition in range(_PARTITIONS)]


def test_small_transactions_write_and_commit_what_they_say(broker: Broker, topic: str, load: Load) -> None:
    group = unique_name("group")
    done = load("transactions", "--group", group, "--producers", "2", "--seconds", "1")
    assert done["transactions"] > 0
    # The first one of each producer is not counted.
    transactions = int(done["transactions"]) + 2
    # 10 records go to 4 partitions as 3, 3, 2 and 2; each partition gets the end of the transaction too.
    assert _ends(broker, topic) == [transactions * records for records in (4, 4, 3, 3)]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    committed = 0
    for name in (f"{group}-0", f"{group}-1"):
        asked = [ConsumerGroupTopicPartitions(name)]
        (found,) = admin.list_consumer_group_offsets(asked)[name].result(timeout=30).topic_partitions
        committed += found.offset + 1
    assert committed == transactions


def test_bulk_is_produced_with_and_without_transactions(broker: Broker, topic: str, load: Load) -> None:
    arguments = ("--messages", "5000", "--size", "100", "--transaction-ms")
    done = load("txn_produce", *arguments, "0")
    assert (done["messages"], done["bytes"], done["transactions"]) == (5000, 500_000, 0)
    # A first record is not counted.
    assert sum(_ends(broker, topic)) == 5001
    done = load("txn_produce", *arguments, "1")
    assert done["transactions"] > 0
    with_ends = sum(_ends(broker, topic))
    assert 10_002 < with_ends <= 10_002 + (1 + done["transactions"]) * _PARTITIONS
    for isolation in ("read_committed", "read_uncommitted"):
        read = load("consumers", "--messages", "10002", "--isolation", isolation)
        assert (read["messages"], read["bytes"]) == (10_002, 1_000_200)
