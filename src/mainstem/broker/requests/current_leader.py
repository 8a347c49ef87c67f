"""Who leads a partition now, for the errors of Produce and Fetch that say so (KIP-951).

A client that is told need not ask for metadata before it goes on elsewhere.
"""

from typing import Final, NamedTuple

from mainstem.broker.requests.context import RequestContext
from mainstem.cluster.image import NO_LEADER, Endpoint
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ZERO_UUID

# The errors of a request that should have gone to another broker, or by newer metadata.
NAMES_LEADER: Final = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))


class CurrentLeader(NamedTuple):
    """As this broker knows it."""

    leader_id: int
    leader_epoch: int
    endpoint: Endpoint | None  # by the client's listener
    rack: str | None


def current_leader(ctx: RequestContext, topic: str, topic_id: bytes, index: int) -> CurrentLeader | None:
    """None when the partition is not known, or has no leader. The topic goes by its id, if it has one."""
    image = ctx.server.image
    found = image.topics_by_name.get(topic) if topic_id == ZERO_UUID else image.topics_by_id.get(topic_id)
    if found is None or not 0 <= index < len(found.partitions):
        return None
    partition = ctx.broker.replicas.find(found.name, index)
    if partition is not None:  # what is here has heard of a change first
        leader_id, leader_epoch = partition.role.leader_id, partition.leader_epoch
    else:
        leader_id, leader_epoch = found.partitions[index].leader, found.partitions[index].leader_epoch
    if leader_id == NO_LEADER:
        return None
    broker = image.brokers.get(leader_id)
    endpoint = None if broker is None or broker.fenced else broker.endpoints.get(ctx.listener_name)
    return CurrentLeader(leader_id, leader_epoch, endpoint, None if broker is None else broker.rack)
