"""`mainstem cluster` against a real broker."""

import json

from mainstem.testing import Broker
from tests.cli.command import run_command
from tests.cli.conftest import Mainstem
from tests.support.target import unique_name


def test_the_status_of_one_node_is_all_well(mainstem: Mainstem, broker: Broker) -> None:
    shown = mainstem("cluster", "status")
    assert shown.returncode == 0, shown.stderr
    first, *rest = shown.stdout.splitlines()
    cluster_id = mainstem("cluster", "id").stdout.strip()
    assert first == f"cluster {cluster_id}  metadata.version 4.3-IV0 (30)"
    assert f"1     broker and controller  {broker.bootstrap_servers}" in rest[1]
    assert "up, leads the quorum" in rest[1]
    assert any(line.startswith("quorum: node 1 leads in epoch ") for line in rest)


def test_the_status_for_scripts_has_everything(mainstem: Mainstem) -> None:
    found = json.loads(mainstem("cluster", "status", "--json").stdout)
    assert [node["node_id"] for node in found["nodes"]] == [1]
    assert found["leader"] == 1
    assert found["followers"][0]["lag"] == 0
    assert found["features"]["metadata.version"] == 30
    assert found["offline"] == found["under_replicated"] == []
    assert [directory["is_lost"] for directory in found["directories"]] == [False]


def test_partitions_that_lack_copies_are_listed(mainstem: Mainstem) -> None:
    name = unique_name("min-isr")
    mainstem("topics", "create", name, "--config", "min.insync.replicas=2")
    under = mainstem("topics", "describe", name, "--under-min-isr-partitions").stdout
    assert under.splitlines()[1].split() == [name, "0", "1", "1", "1", "2"]
    assert mainstem("topics", "describe", name, "--at-min-isr-partitions").stdout == ""
    assert mainstem("topics", "describe", name, "--under-replicated-partitions").stdout == ""
    assert json.loads(mainstem("topics", "describe", name, "--unavailable-partitions", "--json").stdout) == []
    mainstem("topics", "delete", name)


def test_an_election_that_is_not_needed_is_none(mainstem: Mainstem) -> None:
    name = unique_name("elect")
    mainstem("topics", "create", name)
    done = mainstem("cluster", "elect-leaders", "--election-type", "preferred", "--topic", name)
    assert (done.returncode, done.stdout) == (0, "no election was needed\n"), done.stderr


def test_a_broker_with_copies_is_not_forgotten(mainstem: Mainstem) -> None:
    name = unique_name("held")
    mainstem("topics", "create", name)
    refused = mainstem("cluster", "unregister", "--id", "1")
    assert refused.returncode == 1
    assert "broker 1 is still to hold copies of " in refused.stderr


def test_a_broker_that_is_up_is_not_forgotten() -> None:
    with Broker() as alone:
        environment = {"MAINSTEM_BOOTSTRAP": alone.bootstrap_servers}
        refused = run_command("cluster", "unregister", "--id", "1", environment=environment)
    assert refused.returncode == 1
    assert refused.stderr.startswith("mainstem: broker 1 is up\n  -> stop it first")


def test_an_upgrade_to_where_it_is_changes_nothing(mainstem: Mainstem) -> None:
    done = mainstem("cluster", "upgrade", "--feature", "metadata.version=30")
    assert (done.returncode, done.stdout) == (
        0,
        "metadata.version is already at 4.3-IV0\nnothing has changed\n",
    ), done.stderr


def test_a_level_that_changes_is_said_to() -> None:
    with Broker() as alone:
        environment = {"MAINSTEM_BOOTSTRAP": alone.bootstrap_servers}
        features = ("--feature", "group.version=0", "--feature", "transaction.version=2")
        done = run_command("cluster", "downgrade", *features, environment=environment)
    assert done.stdout == "group.version lowered to 0\ntransaction.version is already at 2\n", done.stderr


def test_one_broker_has_nothing_to_move(mainstem: Mainstem) -> None:
    assert mainstem("cluster", "reassign", "--even-out", "--dry-run").stdout == "nothing has to be moved\n"
    assert mainstem("cluster", "reassign", "--list").stdout == "nothing is being moved\n"
    assert "there is no broker 9" in mainstem("cluster", "reassign", "--drain", "9").stderr
    assert mainstem("cluster", "reassign").returncode == 2


def test_features_are_shown_and_tried(mainstem: Mainstem) -> None:
    shown = mainstem("cluster", "features").stdout
    assert any(
        line.split() == ["metadata.version", "3.3-IV3", "4.3-IV0", "4.3-IV0"] for line in shown.splitlines()
    )
    assert "give either" in mainstem("cluster", "upgrade").stderr
    assert "no release 9.9" in mainstem("cluster", "upgrade", "--release-version", "9.9").stderr


def test_what_is_not_said_clearly_is_refused(mainstem: Mainstem) -> None:
    for arguments in (
        ["--election-type", "preferred"],
        ["--election-type", "preferred", "--all-topic-partitions", "--topic", "x"],
        ["--election-type", "unclean", "--all-topic-partitions", "--partition", "0"],
    ):
        assert mainstem("cluster", "elect-leaders", *arguments).returncode == 2
