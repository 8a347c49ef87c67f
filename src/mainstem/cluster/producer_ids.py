"""Producer ids: a block of them is recorded before its first is used, so that none is ever issued twice.

What a crash leaves unused of a block is lost on purpose.
"""

from typing import NamedTuple

from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import MetadataRecord, ProducerIdsRecord
from mainstem.protocol.errors import ErrorCode, KafkaError

BLOCK_SIZE = 1000
_PRODUCER_ID_MAX = 2**63 - 1


class ProducerIdBlock(NamedTuple):
    """A recorded range of ids, for one broker to hand out."""

    first_id: int
    size: int


def allocate_producer_ids(
    image: MetadataImage, broker_id: int, broker_epoch: int
) -> tuple[ProducerIdBlock, list[MetadataRecord]]:
    """The next block for a broker; it may be used once the record is durable."""
    first = image.next_producer_id
    if first > _PRODUCER_ID_MAX - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids of this cluster have been issued.")
    record = ProducerIdsRecord(broker_id, broker_epoch, first + BLOCK_SIZE)
    return ProducerIdBlock(first, BLOCK_SIZE), [record]
