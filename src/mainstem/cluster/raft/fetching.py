"""Whom to fetch from, and when: the leader, or anybody who may know the leader."""

from typing import TYPE_CHECKING, Protocol

from mainstem.cluster.raft.framing import fetch_request, fetch_snapshot_request
from mainstem.cluster.raft.messages import Destination
from mainstem.cluster.snapshot import SnapshotId

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica


class _Fetching(Protocol):
    snapshot_id: SnapshotId
    position: int


def fetch_from_leader(replica: "Replica", leader: Destination, fetching: _Fetching | None) -> int:
    """Ask for what follows, of the snapshot if one is being fetched; when to look again."""
    assert replica.durable_offset == replica.end_offset, "a fetch says what is durable"
    if fetching is None:
        return replica.ask(leader, lambda: fetch_request(replica))
    return replica.ask(
        leader,
        lambda: fetch_snapshot_request(
            replica, fetching.snapshot_id, fetching.position, replica.settings.fetch_snapshot_max_bytes
        ),
    )


def fetch_from_anybody(
    replica: "Replica", leader: Destination | None = None, fetching: _Fetching | None = None
) -> int | None:
    """Fetch from one of the bootstrap servers, one at a time: whoever is asked says who leads. The leader
    that was known is asked in its turn, since it may be nobody's bootstrap server. None when there is nobody
    to ask, or the own disk has to finish first.
    """
    if replica.installing is not None or replica.durable_offset < replica.end_offset:
        return None
    servers = replica.bootstrap_destinations()
    if leader is not None and leader not in servers:
        servers.append(leader)
    if not servers:
        return None
    for server in servers:
        if replica.in_flight.is_asked(server):
            return replica.in_flight.ready_at(server, replica.now_ms)
    ready_ms = [replica.in_flight.ready_at(server, replica.now_ms) for server in servers]
    ready = [server for server, at in zip(servers, ready_ms, strict=True) if at <= replica.now_ms]
    if not ready:
        return min(ready_ms)
    server = ready[replica.random_number(len(ready))]
    if server == leader:
        return fetch_from_leader(replica, server, fetching)
    return replica.ask(server, lambda: fetch_request(replica))
