"""Apache Kafka's TransactionsCommand works on both brokers alike, and `mainstem transactions` says the same.

The transactions are made once for all tests.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from mainstem.testing import Broker
from tests.cli.command import run_command
from tests.cli.open_transactions import LETS_HANG, committed_end, leave_hanging, open_transaction
from tests.support.kafka_peer import kafka_tool, start_own_kafka
from tests.support.target import KEEP_FOREVER, Target, unique_name
from tests.support.tool_server import ToolResult

pytestmark = pytest.mark.peer

Rows = list[dict[str, str]]


@dataclass
class Transactions:
    """A topic of two partitions; a transaction open in both of them, one that is committed, and, in a topic
    of its own, two hanging ones.
    """

    target: Target
    topic: str
    hanging_topic: str
    open_id: str
    committed_id: str
    writer: Producer  # of the open one
    hanging_producers: list[int]

    def tool(self, *arguments: str) -> ToolResult:
        """Apache Kafka's command."""
        return kafka_tool(
            "TransactionsCommand", "--bootstrap-server", self.target.bootstrap_servers, *arguments
        )

    def table(self, *arguments: str) -> Rows:
        """What it prints: columns end with a tab."""
        header, *lines = self.tool(*arguments).check().splitlines()
        names = [name.strip() for name in header.split("\t")[:-1]]
        return [
            dict(zip(names, (cell.strip() for cell in line.split("\t")[:-1]), strict=True)) for line in lines
        ]

    def mainstem(self, *arguments: str) -> str:
        """Our own command."""
        environment = {"MAINSTEM_BOOTSTRAP": self.target.bootstrap_servers}
        done = run_command("transactions", *arguments, environment=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def mainstem_json(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.mainstem(*arguments, "--json"))
        return found


@pytest.fixture(scope="module", params=["mainstem", "kafka"])
def transactions(request: pytest.FixtureRequest) -> Iterator[Transactions]:
    with ExitStack() as stack:
        if request.param == "mainstem":
            broker = stack.enter_context(Broker(config=LETS_HANG))
            target = Target("mainstem", broker.bootstrap_servers, broker.data_dir)
        else:
            peer = start_own_kafka(LETS_HANG)
            target = Target("kafka", peer.bootstrap_servers, Path(peer.log_dir))
        servers = target.bootstrap_servers
        topic = target.create_topic(partitions=2, configs=KEEP_FOREVER)
        hanging_topic = target.create_topic(partitions=2, configs=KEEP_FOREVER)
        open_id, committed_id = unique_name("open"), unique_name("committed")
        open_transaction(servers, committed_id, topic).commit_transaction(60)
        writer = open_transaction(servers, open_id, topic, (0, 1))
        hanging = [leave_hanging(servers, hanging_topic, partition) for partition in range(2)]
        yield Transactions(target, topic, hanging_topic, open_id, committed_id, writer, hanging)


def test_transactions_are_listed(transactions: Transactions) -> None:
    listed = transactions.table("list")
    states = {row["TransactionalId"]: row["TransactionState"] for row in listed}
    assert states == {transactions.open_id: "Ongoing", transactions.committed_id: "CompleteCommit"}
    assert [
        {
            "transactional_id": row["TransactionalId"],
            "state": row["TransactionState"],
            "producer_id": int(row["ProducerId"]),
            "coordinator_id": int(row["Coordinator"]),
        }
        for row in sorted(listed, key=lambda row: row["TransactionalId"])
    ] == transactions.mainstem_json("list")
    pattern = ("--transactional-id-pattern", "o.en-.*")
    assert [row["TransactionalId"] for row in transactions.table("list", *pattern)] == [transactions.open_id]
    assert transactions.mainstem("list", *pattern).split() == [transactions.open_id]
    assert transactions.table("list", "--duration-filter", "300000") == []
    refused = transactions.tool("list", "--transactional-id-pattern", "(")
    assert refused.returncode == 1
    assert "Failed to list transactions" in refused.stderr


def test_a_transaction_is_described(transactions: Transactions) -> None:
    (row,) = transactions.table("describe", "--transactional-id", transactions.open_id)
    (ours,) = transactions.mainstem_json("describe", transactions.open_id)
    assert int(row.pop("TransactionDurationMs")) >= 0
    assert sorted(row.pop("TopicPartitions").split(",")) == [f"{transactions.topic}-{n}" for n in range(2)]
    assert row == {
        "CoordinatorId": str(transactions.target.node_id),
        "TransactionalId": transactions.open_id,
        "ProducerId": str(ours["producer_id"]),
        "ProducerEpoch": str(ours["producer_epoch"]),
        "TransactionState": "Ongoing",
        "TransactionTimeoutMs": "300000",
        "CurrentTransactionStartTimeMs": str(ours["start_time_ms"]),
    }
    (over,) = transactions.table("describe", "--transactional-id", transactions.committed_id)
    assert (over["TransactionState"], over["TopicPartitions"]) == ("CompleteCommit", "")
    absent = transactions.tool("describe", "--transactional-id", "nobody")
    assert absent.returncode == 1
    assert "the ID could not be found" in absent.stderr


def test_producers_are_described(transactions: Transactions, tmp_path: Path) -> None:
    where = ("--topic", transactions.topic, "--partition", "0")
    rows = transactions.table("describe-producers", *where)
    ours = transactions.mainstem_json("describe-producers", *where)
    assert sorted(tuple(row.values()) for row in rows) == sorted(
        (
            str(facts["producer_id"]),
            str(facts["producer_epoch"]),
            str(facts["coordinator_epoch"]),
            str(facts["last_sequence"]),
            str(facts["last_timestamp_ms"]),
            "None" if facts["start_offset"] is None else str(facts["start_offset"]),
        )
        for facts in ours
    )
    # The open transaction begins behind the record and the marker of the committed one.
    opened = [row["CurrentTransactionStartOffset"] for row in rows]
    assert sorted(opened) == ["2", "None"]
    broker = ("--broker-id", str(transactions.target.node_id))
    assert transactions.table("describe-producers", *where, *broker) == rows
    # By default it asks for the partition for a minute.
    impatient = tmp_path / "impatient.properties"
    impatient.write_text("default.api.timeout.ms=2000\nrequest.timeout.ms=1000\n")
    absent = transactions.tool(
        *("--command-config", str(impatient), "describe-producers"),
        *("--topic", transactions.topic, "--partition", "7"),
    )
    assert absent.returncode == 1
    assert "Failed to describe producers" in absent.stderr


def test_hanging_transactions_are_found_and_aborted(transactions: Transactions) -> None:
    topic, servers = transactions.hanging_topic, transactions.target.bootstrap_servers
    broker = ("--broker-id", str(transactions.target.node_id))
    rows = transactions.table("find-hanging", *broker)
    assert sorted((row["Topic"], row["Partition"], row["ProducerId"]) for row in rows) == [
        (topic, str(number), str(producer_id))
        for number, producer_id in enumerate(transactions.hanging_producers)
    ]
    assert {(row["StartOffset"], row["CoordinatorEpoch"]) for row in rows} == {("0", "-1")}
    ours = transactions.mainstem_json("find-hanging")
    assert sorted((row["Topic"], row["Partition"], row["ProducerId"]) for row in rows) == [
        (facts["topic"], str(facts["partition"]), str(facts["producer_id"])) for facts in ours
    ]
    assert committed_end(servers, topic, 0) == 0

    absent = transactions.tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "9")
    assert absent.returncode == 1
    assert "Could not find any open transactions starting at offset 9" in absent.stderr
    transactions.tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "0").check()
    left = transactions.table("find-hanging", "--topic", topic)
    assert [row["Partition"] for row in left] == ["1"]
    transactions.mainstem("abort", "--topic", topic, "--partition", "1", "--start-offset", "0")
    assert transactions.table("find-hanging", "--topic", topic) == []
    assert [committed_end(servers, topic, partition) for partition in range(2)] == [2, 2]


def test_a_producer_is_shut_out(transactions: Transactions) -> None:
    """The last test here: the open transaction is over then."""
    transactions.tool("forceTerminateTransaction", "--transactionalId", transactions.open_id).check()
    (ours,) = transactions.mainstem_json("describe", transactions.open_id)
    assert (ours["state"], ours["partitions"]) == ("Empty", [])
    with pytest.raises(KafkaException) as raised:
        transactions.writer.commit_transaction(60)
    assert raised.value.args[0].code() == KafkaError._FENCED
    fenced = transactions.mainstem("fence", transactions.open_id)
    found = re.fullmatch(r"fenced (.*): producer (\d+) goes on with epoch (\d+)\n", fenced)
    assert found is not None
    assert (int(found[2]), int(found[3])) > (ours["producer_id"], ours["producer_epoch"])
