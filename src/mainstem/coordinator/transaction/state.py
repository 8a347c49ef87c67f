"""What the parts of the transaction coordinator share: the transactional ids, the settings, the way out."""

from functools import partial

from mainstem.config import BrokerConfig
from mainstem.coordinator.effects import Effects, Token
from mainstem.coordinator.timers import Timers
from mainstem.coordinator.topics import Topics
from mainstem.coordinator.transaction.metadata import TransactionMetadata
from mainstem.coordinator.transaction.records import encode_key, encode_value
from mainstem.protocol.resources import TopicPartition


class CoordinatorState:
    """The transactional ids of one partition of `__transaction_state`."""

    def __init__(self, config: BrokerConfig, topics: Topics, coordinator_epoch: int, markers: Token) -> None:
        self.config = config
        self.topics = topics
        self.coordinator_epoch = coordinator_epoch
        self.markers = markers
        self.effects = Effects()
        self.timers = Timers()
        self.transactions: dict[str, TransactionMetadata] = {}
        # Those of them that are ongoing or ending.
        self.open: set[str] = set()

    def write(self, transactional_id: str, metadata: TransactionMetadata | None) -> None:
        """Change what is known of the id, and write it down; None forgets it."""
        before = self.transactions.get(transactional_id)
        self.put(transactional_id, metadata)
        value = None if metadata is None else encode_value(metadata)
        self.effects.write(encode_key(transactional_id), value)
        self.effects.on_failure(partial(self.put, transactional_id, before))

    def put(self, transactional_id: str, metadata: TransactionMetadata | None) -> None:
        """Change it without a word in the log."""
        if metadata is None:
            self.transactions.pop(transactional_id, None)
            self.open.discard(transactional_id)
            return
        self.transactions[transactional_id] = metadata
        if metadata.is_open:
            self.open.add(transactional_id)
        else:
            self.open.discard(transactional_id)

    def existing(self, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of them that the cluster still has."""
        return frozenset(place for place in partitions if self._exists(place))

    def _exists(self, place: TopicPartition) -> bool:
        topic, index = place
        info = self.topics.by_name(topic)
        return info is not None and index < info.partition_count
