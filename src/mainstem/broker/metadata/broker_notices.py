"""A word about brokers that come and go, in the log of the controller that decides on it."""

import logging
from collections.abc import Sequence
from typing import Final

from mainstem.cluster.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

logger = logging.getLogger(__name__)

_REFUSED_MAX: Final = 1000


class RefusedBrokers:
    """Why brokers are not let in, which the response has no room for. They ask again and again: each reason
    is told once.
    """

    def __init__(self) -> None:
        self._told: dict[int, str] = {}

    def tell(self, broker_id: int, reason: str) -> None:
        if self._told.get(broker_id) == reason:
            return
        if len(self._told) >= _REFUSED_MAX:
            self._told.clear()
        self._told[broker_id] = reason
        logger.warning("broker %d is not let in: %s", broker_id, reason)

    def let_in(self, broker_id: int) -> None:
        """Whatever keeps it out the next time is told again."""
        self._told.pop(broker_id, None)


def tell_of_brokers(records: Sequence[MetadataRecord]) -> None:
    """Log what becomes of brokers by these records."""
    for record in records:
        if isinstance(record, RegisterBrokerRecord):
            logger.info("broker %d is registered, with epoch %d", record.broker_id, record.broker_epoch)
        elif isinstance(record, UnregisterBrokerRecord):
            logger.info("broker %d is unregistered", record.broker_id)
        elif isinstance(record, BrokerRegistrationChangeRecord):
            if record.fenced > 0:
                logger.info("broker %d is fenced", record.broker_id)
            elif record.fenced < 0:
                logger.info("broker %d is unfenced", record.broker_id)
            if record.in_controlled_shutdown:
                logger.info("broker %d hands over what it leads, and ends", record.broker_id)
            if record.log_dirs:
                logger.warning(
                    "broker %d has lost a log directory: its replicas there are offline", record.broker_id
                )


def warn_of_silent(records: Sequence[MetadataRecord]) -> None:
    """Log which brokers are fenced although nobody asked for it."""
    for record in records:
        if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced > 0:
            logger.warning(
                "nothing was heard of broker %d for broker.session.timeout.ms: others lead in its place",
                record.broker_id,
            )
