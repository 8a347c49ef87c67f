"""A follower's side of KIP-853: a voter makes a new address or version range known to the leader, and a
controller that may join by itself (controller.quorum.auto.join.enable) asks to become a voter.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from mainstem.cluster.raft.messages import Request
from mainstem.protocol.apis import k80_add_raft_voter as k80
from mainstem.protocol.apis import k82_update_raft_voter as k82
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica


class _Follower(Protocol):
    update_voter_ms: int
    updated_voter: bool


def next_voter_request(replica: "Replica", follower: _Follower) -> Callable[[], Request] | None:
    """What this replica has to say to the leader about itself now, if anything."""
    if replica.stopping or not replica.identity.endpoints:
        return None
    level, mine = replica.history.kraft_version, replica.history.voters.find(replica.key)
    is_due = replica.now_ms >= follower.update_voter_ms
    if not is_due:
        return None
    if mine is not None:
        # While nothing is recorded, every leader is told once.
        is_known = follower.updated_voter if level == 0 else mine == replica.identity.as_voter
        return None if is_known else lambda: _update(replica)
    if level == 0 or not replica.settings.auto_join:
        return None
    former = replica.history.voters.get(replica.key.node_id)
    if former is not None:
        # This node with another directory, which is gone: it stands in the way.
        directory_id = former.key.directory_id
        return lambda: RemoveRaftVoterRequest(replica.identity.cluster_id, replica.key.node_id, directory_id)
    return lambda: _add(replica)


def _update(replica: "Replica") -> k82.UpdateRaftVoterRequest:
    me = replica.identity.as_voter
    return k82.UpdateRaftVoterRequest(
        replica.identity.cluster_id,
        replica.epoch,
        me.key.node_id,
        me.key.directory_id,
        [k82.Listener(each.listener, each.host, each.port) for each in me.endpoints],
        k82.KRaftVersionFeature(
            me.kraft_version.min_supported_version, me.kraft_version.max_supported_version
        ),
    )


def _add(replica: "Replica") -> k80.AddRaftVoterRequest:
    me = replica.identity.as_voter
    return k80.AddRaftVoterRequest(
        replica.identity.cluster_id,
        replica.settings.request_timeout_ms,
        me.key.node_id,
        me.key.directory_id,
        [k80.Listener(each.listener, each.host, each.port) for each in me.endpoints],
        # Committing the change may need this very replica to fetch it, which it does not while it waits.
        ack_when_committed=False,
    )
