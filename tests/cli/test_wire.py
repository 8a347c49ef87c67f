"""The command's own connection: old brokers, brokers that lack an API, and what is no broker at all."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mainstem.cli import cluster_requests
from mainstem.cli.cluster_requests import ClusterRequests, MovedError, check
from mainstem.cli.errors import CommandError
from mainstem.cli.groups.description import describe
from mainstem.cli.groups.requests import GroupRequests
from mainstem.cli.wire import Connection
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from mainstem.protocol.apis.k47_offset_delete import OffsetDeleteRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from mainstem.wire.core import ConnectionCore
from tests.cli.conftest import Mainstem
from tests.cli.group_members import commit
from tests.support.target import unique_name


@contextmanager
def server(answer: bytes) -> Iterator[int]:
    """Listens, sends this to whoever asks something, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(30)


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x08\x00\x00\x00\x63\x00\x00\x00\x00"]
)
def test_what_is_no_broker_is_said_to_be_none(answer: bytes) -> None:
    with server(answer) as port, pytest.raises(CommandError) as raised:
        Connection("127.0.0.1", port)
    assert raised.value.message.startswith(f"no broker answers at 127.0.0.1:{port} (")
    assert raised.value.hint is not None


def test_an_api_that_the_broker_does_not_serve_is_named(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = Connection(broker.host, broker.port)
    monkeypatch.setattr(connection._core, "served", {})
    with pytest.raises(CommandError, match="does not serve OffsetDelete"):
        connection.call(OffsetDeleteRequest())
    connection.close()


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
    with GroupRequests(broker.bootstrap_servers) as requests:
        found = describe(requests, [group, unique_name("absent")])
    assert {name: (facts.type, facts.state) for name, facts in found.items()} == {group: ("classic", "Empty")}
    assert group in mainstem("groups", "list").stdout.splitlines()


def test_a_group_that_is_no_group_of_consumers_is_described(broker: Broker) -> None:
    group = unique_name("connect")
    connection = Connection(broker.host, broker.port)
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
    with GroupRequests(broker.bootstrap_servers) as requests:
        facts = describe(requests, [group])[group]
    assert (facts.state, facts.assignor) == ("Stable", "sessioned")
    (described,) = facts.members
    assert (described.member_id, described.topics, described.assignment) == (member.member_id, [], [])
    connection.close()


def test_a_coordinator_that_is_loading_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_requests, "RETRY_PAUSE_S", 0)
    codes = iter([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE])

    def attempt() -> str:
        check(next(codes), "ask")
        return "answered"

    assert ClusterRequests.retried(attempt) == "answered"
    monkeypatch.setattr(cluster_requests, "REQUEST_TIMEOUT_S", -1)
    with pytest.raises(CommandError, match="still loading"):
        ClusterRequests.retried(lambda: check(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "ask"))


def test_codes_become_sentences_with_a_next_step() -> None:
    with pytest.raises(MovedError):
        check(ErrorCode.COORDINATOR_NOT_AVAILABLE, "ask")
    with pytest.raises(CommandError) as raised:
        check(ErrorCode.NON_EMPTY_GROUP, "delete billing")
    assert raised.value.message == "delete billing: The group still has members."
    assert str(raised.value.hint).startswith("stop its consumers first")
    with pytest.raises(CommandError, match="error 999, which is not known here"):
        check(999, "ask")
