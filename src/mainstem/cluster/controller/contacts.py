"""When each broker was last heard of, and how far it has got: what the active controller knows and no record
says.

A new controller has heard of nobody: it takes everybody as just contacted, or it would fence brokers that are
well (KAFKA-18138).
"""

from collections.abc import Iterable

from msgspec import Struct

from mainstem.cluster.image import BrokerImage

_NOWHERE = -1


class Contact(Struct):
    """One broker in one incarnation."""

    epoch: int
    last_ms: int
    # The offset of the metadata that it has applied.
    metadata_offset: int = _NOWHERE
    # Whether there is a connection on which it was heard, as far as anybody has said.
    is_connected: bool = False
    # What others must have applied before it may end: known once all that it led is led elsewhere.
    shutdown_offset: int = _NOWHERE


class Contacts:
    """`own_id` is the broker in the controller's own process, which is there as long as the controller is."""

    def __init__(
        self, own_id: int, session_timeout_ms: int, brokers: Iterable[BrokerImage], now_ms: int
    ) -> None:
        self._own_id = own_id
        self._session_timeout_ms = session_timeout_ms
        self._contacts = {broker.broker_id: Contact(broker.epoch, now_ms) for broker in brokers}

    def get(self, broker_id: int, epoch: int) -> Contact | None:
        """What is known of a broker in this incarnation."""
        contact = self._contacts.get(broker_id)
        return contact if contact is not None and contact.epoch == epoch else None

    def touch(self, broker_id: int, epoch: int, now_ms: int) -> Contact:
        """It was heard of just now."""
        contact = self.get(broker_id, epoch)
        if contact is None:
            contact = self._contacts[broker_id] = Contact(epoch, now_ms)
        contact.last_ms = now_ms
        contact.is_connected = True
        return contact

    def forget(self, broker_id: int) -> None:
        self._contacts.pop(broker_id, None)

    def has_session(self, broker: BrokerImage, now_ms: int) -> bool:
        """Whether it may be taken for alive. A fenced broker has nothing to lose."""
        return not broker.fenced and now_ms <= self._expires_ms(broker)

    def stale(self, brokers: Iterable[BrokerImage], now_ms: int) -> BrokerImage | None:
        """The unfenced broker that has been silent for longest, if that is too long."""
        silent = [b for b in brokers if b.broker_id != self._own_id and not b.fenced]
        first = min(silent, key=self._expires_ms, default=None)
        return first if first is not None and now_ms > self._expires_ms(first) else None

    def deadline_ms(self, brokers: Iterable[BrokerImage]) -> int | None:
        """When the next broker will have been silent for too long."""
        expiries = [self._expires_ms(b) for b in brokers if b.broker_id != self._own_id and not b.fenced]
        return min(expiries) + 1 if expiries else None

    def lowest_offset(self, brokers: Iterable[BrokerImage]) -> int | None:
        """What all brokers have applied that can lead; None when there are none."""
        offsets = [
            _NOWHERE if (contact := self.get(b.broker_id, b.epoch)) is None else contact.metadata_offset
            for b in brokers
            if b.active
        ]
        return min(offsets, default=None)

    def _expires_ms(self, broker: BrokerImage) -> int:
        contact = self.get(broker.broker_id, broker.epoch)
        return self._session_timeout_ms + (0 if contact is None else contact.last_ms)
