"""AllocateProducerIds: a block of producer ids is recorded before its first is used, so that none is ever
issued twice.

What a crash leaves unused of a block is lost on purpose.
"""

from mainstem.cluster.image import BrokerImage, MetadataImage
from mainstem.cluster.records import MetadataRecord, ProducerIdsRecord
from mainstem.protocol.apis.k67_allocate_producer_ids import AllocateProducerIdsResponse
from mainstem.protocol.errors import ErrorCode, KafkaError

BLOCK_SIZE = 1000
_PRODUCER_ID_MAX = 2**63 - 1


def allocate_producer_ids(
    image: MetadataImage, broker: BrokerImage
) -> tuple[AllocateProducerIdsResponse, list[MetadataRecord]]:
    """The next block, for one broker to hand out; it may be used once the record is durable."""
    first = image.next_producer_id
    if first > _PRODUCER_ID_MAX - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids of this cluster have been issued.")
    record = ProducerIdsRecord(broker.broker_id, broker.epoch, first + BLOCK_SIZE)
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE), [record]
