"""What retention does for one partition: old segments go, and producers that were silent are forgotten."""

import logging
from typing import TYPE_CHECKING

from mainstem.broker.logs.partition import Partition
from mainstem.protocol.errors import KafkaError

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)


def remove_old_segments(server: "SharedServer", partition: Partition) -> None:
    """Files are only renamed; whoever waits for a part of the log that is gone is told."""
    if partition.deleted or partition.log.health.failure is not None:
        return
    now_ms = server.clock.now_ms()
    try:
        removed = partition.log.delete_old_segments(now_ms, partition.high_watermark)
    except KafkaError as error:
        logger.error("cannot remove old segments of %s: %s", partition, error)
        return
    partition.log.producers.state.remove_expired(now_ms, server.config.get("producer.id.expiration.ms"))
    if removed:
        partition.tell_subscribers()
