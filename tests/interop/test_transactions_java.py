"""Transactions with Kafka's own client: TransactionClients.java does the work, it is read back here.

That it agrees with Apache Kafka is no news, so that is looked at only with --soak.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.group_views import fill
from tests.support.kafka_peer import kafka_tool
from tests.support.target import Target, unique_name
from tests.support.transaction_clients import read_committed

pytestmark = pytest.mark.peer

PARTITIONS = 4
TRANSFERS = 60
MESSAGES = 200
_PROGRAM = str(Path(__file__).with_name("TransactionClients.java"))


@pytest.fixture(params=["mainstem", pytest.param("kafka", marks=pytest.mark.soak)])
def target(request: pytest.FixtureRequest) -> Target:
    """Mainstem, then Apache Kafka."""
    return request.getfixturevalue(request.param)


def run(target: Target, *arguments: str) -> list[str]:
    mode, *others = arguments
    return kafka_tool(_PROGRAM, mode, target.bootstrap_servers, *others).check().splitlines()


def test_bank_transfers(target: Target) -> None:
    topic = target.create_topic(partitions=PARTITIONS)
    committed = run(target, "bank", topic, unique_name("teller"), str(TRANSFERS))
    assert committed == [str(number) for number in range(TRANSFERS) if number % 3 != 2]
    entries = [value.decode().split() for part in read_committed(target, topic, PARTITIONS) for value in part]
    assert Counter(transfer for transfer, _ in entries) == Counter(dict.fromkeys(committed, 2))
    assert sum(int(amount) for _, amount in entries) == 0
    everything = read_committed(target, topic, PARTITIONS, dirty=True)
    assert sum(map(len, everything)) == 2 * TRANSFERS


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_messages_are_moved_exactly_once(target: Target, protocol: str) -> None:
    source, sink = (target.create_topic(partitions=PARTITIONS) for _ in range(2))
    fill(target, source, PARTITIONS, MESSAGES)
    assert run(target, "move", source, sink, unique_name("group"), protocol, str(MESSAGES)) == [str(MESSAGES)]
    expected = [[b"%d" % number for number in range(part, MESSAGES, 4)] for part in range(PARTITIONS)]
    assert read_committed(target, sink, PARTITIONS) == expected
    everything = read_committed(target, sink, PARTITIONS, dirty=True)
    assert sum(map(len, everything)) > MESSAGES, "no transaction was aborted"


def test_the_older_of_two_instances_is_fenced(target: Target) -> None:
    topic = target.create_topic()
    assert run(target, "zombie", topic, unique_name("instance")) == ["fenced"]
    assert read_committed(target, topic, 1) == [[b"alive"]]
    assert read_committed(target, topic, 1, dirty=True) == [[b"from the grave", b"alive"]]
