"""Which replica a consumer that says where it is should read from (KIP-392): one in its own rack, if that is
in sync, has what is asked for, and can be reached through the listener that the consumer uses.
"""

from collections.abc import Mapping
from typing import Final

from mainstem.broker.logs.partition import Partition
from mainstem.cluster.image import BrokerImage
from mainstem.replication.leader_state import LeaderState

# The one selector of Kafka's own that is named in `replica.selector.class`; no other Java class runs here.
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

LEADER: Final = -1


def preferred_replica(
    partition: Partition, offset: int, rack: str, brokers: Mapping[int, BrokerImage], listener_name: str
) -> int:
    """The broker to read from; LEADER when that is the one that was asked, or when it is none that leads."""
    leader = partition.role
    if not isinstance(leader, LeaderState):
        return LEADER
    own = brokers.get(leader.leader_id)
    if own is not None and own.rack == rack:
        return LEADER
    near = [
        (follower.end_offset, follower.caught_up_ms, -follower.broker_id)
        for follower in leader.followers.values()
        if follower.broker_id in leader.isr
        and follower.log_start_offset <= offset <= follower.end_offset
        and (broker := brokers.get(follower.broker_id)) is not None
        and broker.rack == rack
        and not broker.fenced
        and listener_name in broker.endpoints
    ]
    return -max(near)[2] if near else LEADER
