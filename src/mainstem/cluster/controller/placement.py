"""Which brokers get the replicas of a new partition.

Brokers are put in a line in which racks take turns; each partition starts one place further, so that leaders
and replicas spread evenly. No randomness here: the caller gives the place to start at.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from mainstem.cluster.image import BrokerImage
from mainstem.protocol.errors import ErrorCode, KafkaError


def place_replicas(
    brokers: Iterable[BrokerImage],
    partition_count: int,
    replication_factor: int,
    start: int,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """The replicas of each new partition, the preferred leader first."""
    known = [broker for broker in brokers if not broker.in_controlled_shutdown]
    candidates = [broker for broker in known if not broker.wholly_cordoned]
    if known and not candidates:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "No partition can be placed: all log directories are cordoned (cordoned.log.dirs).",
        )
    if replication_factor > len(candidates):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{replication_factor} replicas need as many brokers; the cluster has {len(candidates)}.",
        )
    active = _in_line(broker for broker in candidates if not broker.fenced)
    if not active:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "No partition can be placed: every broker is fenced."
        )
    # A fenced broker may hold a replica, but only where too few others are left, and it never leads.
    fenced = _in_line(broker for broker in candidates if broker.fenced)
    return [
        _one_partition(active, fenced, replication_factor, start, first_partition + index)
        for index in range(partition_count)
    ]


def _in_line(brokers: Iterable[BrokerImage]) -> list[int]:
    racks: dict[str | None, list[int]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.broker_id):
        racks.setdefault(broker.rack, []).append(broker.broker_id)
    turns = zip_longest(*(racks[rack] for rack in sorted(racks, key=lambda rack: rack or "")))
    return [broker_id for broker_id in chain.from_iterable(turns) if broker_id is not None]


def _one_partition(
    active: Sequence[int], fenced: Sequence[int], replication_factor: int, start: int, partition: int
) -> tuple[int, ...]:
    count = len(active)
    leader_place = start + partition
    replicas = [active[leader_place % count]]
    if count > 1:
        # After each full turn the followers move on by one, so that no two brokers are always a pair.
        shift = (leader_place // count) % (count - 1)
        followers = [active[(leader_place + 1 + place) % count] for place in range(count - 1)]
        replicas += followers[shift:] + followers[:shift]
    if len(replicas) < replication_factor:
        replicas += [fenced[(leader_place + place) % len(fenced)] for place in range(len(fenced))]
    return tuple(replicas[:replication_factor])
