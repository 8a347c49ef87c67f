"""Producer ids: a block of them is recorded before its first is used, so that none is ever issued twice.

What a crash leaves unused of a block is lost on purpose.
"""

from msgspec import Struct

from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import MetadataRecord, ProducerIdsRecord
from mainstem.protocol.errors import ErrorCode, KafkaError

BLOCK_SIZE = 1000
_PRODUCER_ID_MAX = 2**63 - 1


class ProducerIdBlock(Struct):
    """A recorded range of ids, handed out one by one."""

    next_id: int = 0
    end_id: int = 0

    def take(self) -> int | None:
        """An id that was never given before, or None when the block is used up."""
        if self.next_id >= self.end_id:
            return None
        self.next_id += 1
        return self.next_id - 1


def allocate_producer_ids(
    image: MetadataImage, broker_id: int, broker_epoch: int
) -> tuple[ProducerIdBlock, list[MetadataRecord]]:
    """The next block for a broker; it may be used once the record is durable."""
    first = image.next_producer_id
    if first > _PRODUCER_ID_MAX - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids of this cluster have been issued.")
    end = first + BLOCK_SIZE
    return ProducerIdBlock(first, end), [ProducerIdsRecord(broker_id, broker_epoch, end)]
