"""A marker that ends a transaction in one of its partitions, and how it gets into one of this node."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS
from mainstem.broker.logs.partition import Partition
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import TopicPartition

if TYPE_CHECKING:
    from mainstem.broker.coordination.node_coordinators import NodeCoordinators

_ACKS_ALL: Final = -1

# Called once for each partition: the marker is committed, or why it is not known to be.
Done = Callable[[TopicPartition, ErrorCode], None]


class Marker(NamedTuple):
    """What is written into each partition of a transaction."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    transaction_version: int


def write_marker(coordinators: "NodeCoordinators", place: TopicPartition, marker: Marker, done: Done) -> None:
    """Write a marker into a partition of this node; `done` is called when it is committed, or cannot be."""
    topic, index = place
    try:
        partition = coordinators.replicas.by_topic(topic, index)
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a marker needs a producer id and an epoch")
        partition.check_enough_replicas()
        if topic == CONSUMER_OFFSETS:
            # The offsets in the transaction count from here on.
            coordinators.groups.write_marker(index, *marker)
        else:
            producer_id, producer_epoch, coordinator_epoch, commit, transaction_version = marker
            partition.append_marker(
                producer_id,
                producer_epoch,
                coordinator_epoch,
                commit,
                coordinators.server.clock.now_ms(),
                transaction_version,
            )
        partition.flush_in_time()
    except KafkaError as error:
        done(place, error.code)
        return
    last_offset = partition.log.log_end_offset - 1
    if partition.is_committed(last_offset, _ACKS_ALL):
        done(place, ErrorCode.NONE)
    else:
        partition.add_ack_waiter(last_offset, _ACKS_ALL, _Committing(place, done))


class _Committing:
    """A marker that waits for the high watermark of its partition."""

    __slots__ = ("_done", "_place")

    def __init__(self, place: TopicPartition, done: Done) -> None:
        self._place = place
        self._done = done

    def acknowledged(self, partition: Partition, error: ErrorCode) -> None:
        self._done(self._place, error)
