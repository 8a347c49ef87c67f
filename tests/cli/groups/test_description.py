"""How groups are described that are no ordinary ones: of old brokers, and of other programs."""

import pytest

from mainstem.cli.clusters.target import Target
from mainstem.cli.groups.description import describe_groups
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from mainstem.testing import Broker
from mainstem.wire import ClientOptions, Connection
from mainstem.wire.core import ConnectionCore
from tests.cli.conftest import Mainstem
from tests.cli.group_members import commit
from tests.support.target import unique_name


def test_groups_of_an_old_broker_are_described(
    broker: Broker, mainstem: Mainstem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds one coordinator at a time, knows only the classic protocol and calls an absent group dead."""
    topic, group = unique_name("old"), unique_name("group")
    mainstem("topics", "create", topic)
    commit(broker.bootstrap_servers, group, topic, 0)
    newest = {10: 3, 69: -1, 15: 4, 16: 2}
    version_of = ConnectionCore.version_of

    def of_old_times(connection: ConnectionCore, api_key: int) -> int | None:
        version = newest.get(api_key, version_of(connection, api_key))
        return None if version == -1 else version

    monkeypatch.setattr(ConnectionCore, "version_of", of_old_times)
    with Target({"bootstrap.servers": broker.bootstrap_servers}).connect() as cluster:
        found = describe_groups(cluster, [group, unique_name("absent")])
    assert {name: (facts.type, facts.state) for name, facts in found.items()} == {group: ("classic", "Empty")}
    assert group in mainstem("groups", "list").stdout.splitlines()


def test_a_group_that_is_no_group_of_consumers_is_described(broker: Broker) -> None:
    group = unique_name("connect")
    connection = Connection(broker.host, broker.port, ClientOptions())
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="connect",
        protocols=[JoinGroupRequestProtocol(name="sessioned", metadata=b"\x00\x01not for us")],
    )
    join.member_id = connection.call(join).member_id
    member = connection.call(join)
    connection.call(
        SyncGroupRequest(
            group_id=group,
            generation_id=member.generation_id,
            member_id=member.member_id,
            protocol_type="connect",
            protocol_name="sessioned",
            assignments=[SyncGroupRequestAssignment(member.member_id, b"\x00\x01nor this")],
        )
    )
    with Target({"bootstrap.servers": broker.bootstrap_servers}).connect() as cluster:
        facts = describe_groups(cluster, [group])[group]
    assert (facts.state, facts.assignor) == ("Stable", "sessioned")
    (described,) = facts.members
    assert (described.member_id, described.topics, described.assignment) == (member.member_id, [], [])
    connection.close()
