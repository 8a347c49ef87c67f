"""`mainstem topics` against a real broker."""

import json
import re

import pytest

from mainstem.testing import Broker
from tests.cli.command import run_command
from tests.cli.conftest import Mainstem
from tests.cli.group_members import commit
from tests.support.target import unique_name


def test_a_topic_is_created_listed_described_and_deleted(mainstem: Mainstem) -> None:
    name = unique_name("life")
    created = mainstem("topics", "create", name, "--partitions", "3", "--config", "retention.ms=60000")
    assert (created.returncode, created.stdout) == (0, f"created {name}\n")
    assert name in mainstem("topics", "list").stdout.splitlines()

    described = mainstem("topics", "describe", name).stdout.splitlines()
    assert described[0].startswith(f"{name}  id ")
    assert described[0].endswith("partitions 3  replication 1")
    columns = ["partition", "leader", "replicas", "isr", "earliest", "latest", "size", "segments", "state"]
    assert described[1].split() == columns
    assert described[2].split() == ["0", "1", "1", "1", "0", "0", "0", "B", "1", "-"]
    assert described[5:] == ["  kept: for 1m00s", "  retention.ms=60000"]

    deleted = mainstem("topics", "delete", name)
    assert (deleted.returncode, deleted.stdout) == (0, f"deleted {name}\n")
    assert name not in mainstem("topics", "list").stdout.splitlines()


def test_json_output_is_for_scripts(mainstem: Mainstem) -> None:
    name = unique_name("json")
    mainstem("topics", "create", name, "--partitions", "2")
    listed = json.loads(mainstem("topics", "list", "--json").stdout)
    assert {"name": name, "partitions": 2, "replication_factor": 1} in listed

    (topic,) = json.loads(mainstem("topics", "describe", "--json", name).stdout)
    assert topic["name"] == name
    assert topic["internal"] is False
    assert topic["configs"] == {}
    assert len(topic["topic_id"]) == 22
    assert topic["partitions"][1] == {
        "partition": 1,
        "leader": 1,
        "replicas": [1],
        "isr": [1],
        "earliest": 0,
        "latest": 0,
        "size": 0,
        "segments": 1,
        "oldest_segment_ms": None,
        "clean_bytes": None,
        "cleanable_bytes": None,
        "uncleanable": None,
    }
    (everything,) = json.loads(mainstem("topics", "describe", "--json", "--all-configs", name).stdout)
    assert everything["configs"]["cleanup.policy"] == "delete"


def test_creating_a_topic_twice_says_what_to_do(mainstem: Mainstem) -> None:
    name = unique_name("twice")
    mainstem("topics", "create", name)
    again = mainstem("topics", "create", name)
    assert again.returncode == 1
    assert again.stderr.startswith(f"mainstem: create {name}: ")
    assert re.search(r"  -> `(\./)?mainstem topics describe` shows it", again.stderr)
    assert mainstem("topics", "create", "--if-not-exists", name).returncode == 0


def test_one_refused_topic_does_not_keep_the_others_from_being_created(mainstem: Mainstem) -> None:
    name = unique_name("good")
    result = mainstem("topics", "create", "bad name", name)
    assert result.returncode == 1
    assert result.stdout == f"created {name}\n"
    assert "bad name" in result.stderr


def test_a_misspelt_topic_is_answered_with_the_nearest(mainstem: Mainstem) -> None:
    name = unique_name("spelling")
    mainstem("topics", "create", name)
    result = mainstem("topics", "describe", name + "x")
    assert result.returncode == 1
    assert result.stderr == f"mainstem: there is no topic '{name}x'\n  -> did you mean {name}?\n"


def test_deleting_what_is_not_there(mainstem: Mainstem) -> None:
    name = unique_name("absent")
    assert mainstem("topics", "delete", name).returncode == 1
    assert mainstem("topics", "delete", "--if-exists", name).returncode == 0


def test_partitions_only_grow(mainstem: Mainstem) -> None:
    name = unique_name("grow")
    mainstem("topics", "create", name, "--partitions", "2")
    grown = mainstem("topics", "alter", name, "--partitions", "3")
    assert grown.stdout == f"grown from 2 to 3 partitions: {name}\n"
    assert grown.stderr == ""
    refused = mainstem("topics", "alter", name, "--partitions", "3")
    assert refused.returncode == 1
    assert "can only grow" in refused.stderr
    assert "give --partitions 4 or more" in refused.stderr


def test_growing_a_topic_that_holds_keys_warns(mainstem: Mainstem) -> None:
    name = unique_name("keyed")
    mainstem("topics", "create", name)
    mainstem("produce", name, "--key", "k", stdin="v\n")
    grown = mainstem("topics", "alter", name, "--partitions", "2")
    assert grown.returncode == 0
    assert f"warning: {name} holds messages with keys" in grown.stderr


def test_growing_a_topic_without_keys_does_not_warn(mainstem: Mainstem) -> None:
    name = unique_name("keyless")
    mainstem("topics", "create", name)
    mainstem("produce", name, stdin="v\n")
    assert mainstem("topics", "alter", name, "--partitions", "2").stderr == ""


def test_settings_are_altered_and_taken_back(mainstem: Mainstem) -> None:
    name = unique_name("configs")
    mainstem("topics", "create", name)
    altered = mainstem("topics", "alter", name, "-c", "retention.ms=1000", "-c", "segment.bytes=1048576")
    assert altered.returncode == 0
    taken_back = mainstem("topics", "alter", name, "--delete-config", "retention.ms")
    assert taken_back.stdout == f"altered {name}: retention.ms back to its default\n"
    (topic,) = json.loads(mainstem("topics", "describe", "--json", name).stdout)
    assert topic["configs"] == {"segment.bytes": "1048576"}
    unknown = mainstem("topics", "alter", name, "--delete-config", "retenton.ms")
    assert unknown.returncode == 1
    assert "did you mean retention.ms?" in unknown.stderr


def test_an_unknown_setting_is_refused(mainstem: Mainstem) -> None:
    name = unique_name("unknown")
    mainstem("topics", "create", name)
    result = mainstem("topics", "alter", name, "--config", "no.such=1")
    assert result.returncode == 1
    assert "no.such" in result.stderr
    assert "docs/configuration.md" in result.stderr
    assert mainstem("topics", "alter", name).returncode == 2


@pytest.mark.parametrize("count", [100_001, 999_999_999, 99_999_999_999])
def test_a_number_of_partitions_beyond_reason_is_refused_in_one_line(mainstem: Mainstem, count: int) -> None:
    name = unique_name("many")
    mainstem("topics", "create", name)
    for arguments in (("alter", name), ("create", unique_name("never"))):
        refused = mainstem("topics", *arguments, "--partitions", str(count))
        assert refused.returncode in (1, 2)
        assert refused.stderr.startswith("mainstem: ")
        assert len(refused.stderr.splitlines()) <= 2


def test_a_topic_of_the_brokers_wants_more_than_yes_to_be_deleted() -> None:
    with Broker() as broker:
        environment = {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers}
        run_command("topics", "create", "orders", environment=environment)
        commit(broker.bootstrap_servers, "group", "orders", 0)
        refused = run_command("topics", "delete", "__consumer_offsets", "--yes", environment=environment)
        assert refused.returncode == 1
        assert "every group forgets what it has committed" in refused.stderr
        assert refused.stderr.endswith("  -> --internal deletes such a topic unasked\n")
        listed = run_command("topics", "list", environment=environment).stdout
        assert "__consumer_offsets" in listed.splitlines()
        deleted = run_command("topics", "delete", "__consumer_offsets", "--internal", environment=environment)
        assert (deleted.returncode, deleted.stdout) == (0, "deleted __consumer_offsets\n")
