"""`mainstem groups list`, `describe`, `members` and `lag` against a real broker."""

import json
import time
from typing import Any

import pytest
from confluent_kafka import Producer

from mainstem.testing import Broker
from tests.cli.conftest import Mainstem
from tests.cli.group_members import commit, members
from tests.support.target import unique_name

HOUR_MS = 3_600_000


@pytest.fixture
def topic(mainstem: Mainstem) -> str:
    """Three partitions with ten messages each, an hour old."""
    name = unique_name("messages")
    created = mainstem("topics", "create", name, "--partitions", "3", "--config", "retention.ms=-1")
    assert created.returncode == 0
    return name


def fill(broker: Broker, topic: str, count: int = 10) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    hour_ago_ms = int(time.time() * 1000) - HOUR_MS
    for partition in range(3):
        for number in range(count):
            producer.produce(topic, str(number), partition=partition, timestamp=hour_ago_ms)
    assert producer.flush(30) == 0


def group_json(mainstem: Mainstem, command: str, group: str) -> dict:
    printed = mainstem("groups", command, group, "--json")
    assert printed.returncode == 0, printed.stderr
    (found,) = json.loads(printed.stdout)
    return found


def test_a_group_of_offsets_only_is_listed_and_described(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    fill(broker, topic)
    group = unique_name("offsets")
    commit(broker.bootstrap_servers, group, topic, 4, 10)
    assert group in mainstem("groups", "list").stdout.splitlines()
    assert group in mainstem("groups", "list", "--state", "empty", "--type", "classic").stdout.splitlines()
    assert group not in mainstem("groups", "list", "--state", "Stable,Assigning").stdout.splitlines()
    assert group not in mainstem("groups", "list", "--type", "consumer").stdout.splitlines()
    listed = json.loads(mainstem("groups", "list", "--json").stdout)
    assert [item for item in listed if item["group_id"] == group] == [
        {"group_id": group, "type": "classic", "state": "Empty", "protocol_type": ""}
    ]
    title, header, *rows = mainstem("groups", "describe", group).stdout.splitlines()
    assert title.startswith(f"{group}  type classic  state Empty  members 0  coordinator ")
    assert title.endswith("lag 6")
    assert header.split() == ["topic", "partition", "committed", "end", "lag", "member", "host", "client"]
    assert [row.split() for row in rows] == [
        [topic, "0", "4", "10", "6", "-", "-", "-"],
        [topic, "1", "10", "10", "0", "-", "-", "-"],
    ]
    nobody = mainstem("groups", "members", group)
    assert (nobody.stdout, nobody.stderr) == ("", f"{group} has no members (state Empty)\n")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_shown_with_their_partitions_and_lag(
    broker: Broker, mainstem: Mainstem, topic: str, protocol: str
) -> None:
    group = unique_name("members")
    settings: Any = {"group.protocol": protocol, "auto.offset.reset": "latest"}
    commit(broker.bootstrap_servers, group, topic, 0, 0, 0)
    with members(broker.bootstrap_servers, group, topic, (1, 2), **settings):
        fill(broker, topic)
        described = group_json(mainstem, "describe", group)
        assert (described["type"], described["state"], described["lag"]) == (protocol, "Stable", 30)
        assert described["assignor"] == ("range" if protocol == "classic" else "uniform")
        assert (described["epoch"] is None) == (protocol == "classic")
        assert [part["lag"] for part in described["partitions"]] == [10, 10, 10]
        shown = group_json(mainstem, "members", group)["members"]
        assert sorted(member["client_id"] for member in shown) == ["client-0", "client-1"]
        assert sorted(member["lag"] for member in shown) == [10, 20]
        for member in shown:
            assert member["topics"] == [topic]
            assert member["protocol"] == protocol
            assert member["host"].startswith("/")
            owned = member["assignment"][topic]
            assert owned == [
                part["partition"]
                for part in described["partitions"]
                if part["member_id"] == member["member_id"]
            ]
            assert member["target"] == (None if protocol == "classic" else {topic: owned})
        table = mainstem("groups", "members", group).stdout.splitlines()
        assert table[0].startswith(f"{group}  type {protocol}  state Stable  members 2  assignor ")
        assert table[1].split()[:5] == ["member", "client", "host", "partitions", "lag"]
        assert len(table) == 4


def test_a_group_between_the_protocols_shows_who_speaks_which(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    group = unique_name("mixed")
    servers = broker.bootstrap_servers
    with members(servers, group, topic, (3,)) as old:
        modern = {"group.protocol": "consumer"}
        with members(servers, group, topic, (2, 1), joined=old, **modern):
            shown = group_json(mainstem, "describe", group)
            assert shown["type"] == "consumer"
            assert sorted(member["protocol"] for member in shown["members"]) == ["classic", "consumer"]
            header, *rows = mainstem("groups", "members", group).stdout.splitlines()[1:]
            assert header.split()[:6] == ["member", "client", "host", "partitions", "lag", "protocol"]
            assert sorted(row.split()[5] for row in rows) == ["classic", "consumer"]


def test_lag_is_told_in_records_and_time_by_partition_by_member_and_in_sum(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    group = unique_name("lag")
    commit(broker.bootstrap_servers, group, topic, 10, 4, 0)
    with members(broker.bootstrap_servers, group, topic, (3,)):
        fill(broker, topic)
        found = group_json(mainstem, "lag", group)
        assert [part["lag"] for part in found["partitions"]] == [0, 6, 10]
        assert found["partitions"][0]["seconds"] == 0
        # The unread messages are an hour old, and the clock does not stand still.
        assert all(part["seconds"] >= HOUR_MS / 1000 for part in found["partitions"][1:])
        (member,) = found["members"]
        assert (member["client_id"], member["lag"], found["lag"], found["lost"]) == ("client-0", 16, 16, 0)
        assert found["seconds"] == member["seconds"] == max(part["seconds"] for part in found["partitions"])
        lines = mainstem("groups", "lag", group).stdout.splitlines()
        assert lines[0].startswith(f"{group}  state Stable  lag 16 records, 1h0")
        assert lines[2].split() == [topic, "0", "10", "10", "0", "0.0", "s", "client-0"]
        assert lines[5].split() == ["member", "client", "partitions", "lag", "behind"]
        assert lines[6].split()[1:4] == ["client-0", "3", "16"]


def test_records_that_retention_took_are_counted(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    group = unique_name("lost")
    fill(broker, topic)
    commit(broker.bootstrap_servers, group, topic, 2)
    _delete_records(broker, topic, before=5)
    found = group_json(mainstem, "lag", group)
    assert (found["lag"], found["lost"]) == (8, 3)
    assert "3 of these records were deleted" in mainstem("groups", "lag", group).stdout


def _delete_records(broker: Broker, topic: str, before: int) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(30)


def test_a_misspelt_group_is_answered_with_the_nearest(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    group = unique_name("spelling")
    commit(broker.bootstrap_servers, group, topic, 0)
    for command in ("describe", "members", "lag"):
        result = mainstem("groups", command, f"{group}x")
        assert result.returncode == 1
        assert result.stderr == f"mainstem: there is no group '{group}x'\n  -> did you mean {group}?\n"
    unknown = mainstem("groups", "list", "--state", "sleepy")
    assert unknown.returncode == 2
    assert "use some of Empty" in unknown.stderr


def test_no_broker_says_how_to_start_one(mainstem: Mainstem) -> None:
    for command in (("list",), ("describe",), ("lag", "g"), ("delete", "g")):
        result = mainstem("groups", *command, "-b", "localhost:1")
        assert result.returncode == 1
        assert result.stderr.startswith("mainstem: no broker answers at localhost:1 (")
