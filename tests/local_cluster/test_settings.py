"""What each node of a cluster on one machine is told."""

import pytest

from mainstem.config import parse_properties
from mainstem.local_cluster.settings import PLACED, Plan, properties_text, voters_of


def plan(nodes: int, host: str = "127.0.0.1") -> Plan:
    ids = range(1, nodes + 1)
    return Plan(
        host,
        "here",
        {node: 9091 + node for node in ids},
        {voter: 19091 + voter for voter in voters_of(nodes)},
        {node: f"d/node-{node}" for node in ids},
    )


@pytest.mark.parametrize(
    ("nodes", "voters", "copies", "needed"),
    [(1, (1,), "1", "1"), (2, (1,), "2", "1"), (3, (1, 2, 3), "3", "2"), (5, (1, 2, 3), "3", "2")],
)
def test_voters_and_copies_fit_the_number_of_nodes(
    nodes: int, voters: tuple[int, ...], copies: str, needed: str
) -> None:
    assert voters_of(nodes) == voters
    settings = plan(nodes).settings(1)
    for name in ("default", "offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        assert settings[f"{name}.replication.factor"] == copies
    for name in ("min.insync.replicas", "transaction.state.log.min.isr"):
        assert settings[name] == needed


def test_a_voter_listens_for_controllers_too_and_the_rest_are_brokers_alone() -> None:
    first, fourth = plan(4).settings(1), plan(4).settings(4)
    assert first["process.roles"] == "broker,controller"
    assert first["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:19092"
    assert fourth["process.roles"] == "broker"
    assert fourth["listeners"] == "PLAINTEXT://127.0.0.1:9095"
    voters = "1@127.0.0.1:19092,2@127.0.0.1:19093,3@127.0.0.1:19094"
    assert first["controller.quorum.voters"] == fourth["controller.quorum.voters"] == voters
    assert first["broker.rack"] == "here"


def test_every_interface_is_dialled_as_localhost() -> None:
    settings = plan(3, "0.0.0.0").settings(2)
    assert settings["listeners"].startswith("PLAINTEXT://0.0.0.0:9093,")
    assert settings["advertised.listeners"].startswith("PLAINTEXT://localhost:9093,")
    assert settings["controller.quorum.voters"].startswith("1@localhost:")
    assert plan(3, "::1").address(1) == "[::1]:9092"


def test_what_places_a_node_is_never_given_to_all() -> None:
    ours = set(plan(3).settings(1))
    shared = {name for name in ours if "replica" in name or "isr" in name} | {"broker.rack"}
    assert ours - shared <= PLACED


def test_settings_are_read_from_the_file_as_they_were_written() -> None:
    settings = {"log.dirs": " C:\\data\\node-1", "a": "b=c", "empty": "", "n": "1\n2"}
    assert parse_properties(properties_text(settings)) == settings
