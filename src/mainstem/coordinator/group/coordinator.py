"""The group coordinator of one partition of `__consumer_offsets`: its parts put together as one machine."""

from collections.abc import Callable
from typing import Any

from mainstem.config import BrokerConfig
from mainstem.coordinator.group.classic import ClassicGroups
from mainstem.coordinator.group.consumer import ConsumerGroups
from mainstem.coordinator.group.offset_replay import KEY_TYPES as OFFSET_KEY_TYPES
from mainstem.coordinator.group.offsets import Offsets
from mainstem.coordinator.group.records import decode_key, decode_value
from mainstem.coordinator.group.records.classic import GroupMetadataKey
from mainstem.coordinator.group.state import GroupState
from mainstem.coordinator.topics import Topics
from mainstem.protocol.errors import ErrorCode


class GroupCoordinator:
    """Groups of both protocols, and their offsets."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        new_id: Callable[[], str],
        group_config: Callable[[str], dict[str, Any]],
    ) -> None:
        self.state = state = GroupState(config, topics, new_id, group_config)
        self.effects = state.effects
        self.timers = state.timers
        self.offsets = Offsets(state)
        self.classic = ClassicGroups(state)
        self.consumer = ConsumerGroups(state)
        state.new_simple_group = self.classic.create_simple
        state.forget_group = self.classic.rebalances.forget
        state.classic_bridge = self.consumer.classic_bridge

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply a record; a key of a type that is not known here, such as a share group's, is passed over."""
        if key[:2] in OFFSET_KEY_TYPES:
            self.offsets.replay(key, value)
            return
        decoded = decode_key(key)
        if decoded is not None:
            part: Any = self.classic if isinstance(decoded, GroupMetadataKey) else self.consumer
            part.replay(decoded, None if value is None else decode_value(decoded, value))

    def replay_transactional(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """The same for a record of a transaction: only offsets wait for its end."""
        if key[:2] in OFFSET_KEY_TYPES:
            self.offsets.replay_transactional(producer_id, key, value)
        else:
            self.replay(key, value)

    def transaction_ended(self, producer_id: int, commit: bool) -> None:
        self.offsets.transaction_ended(producer_id, commit)

    def loaded(self, now_ms: int) -> None:
        self.classic.loaded(now_ms)
        self.consumer.loaded(now_ms)
        self.offsets.loaded(now_ms)

    def unload(self, error: ErrorCode) -> None:
        """Nobody waits in a consumer group: heartbeats are answered at once."""
        self.classic.unload(error)

    def topics_changed(self, now_ms: int) -> None:
        """Heartbeats of consumer groups see for themselves that the metadata is newer than what their group
        has looked at.
        """
        self.offsets.topics_changed(now_ms)
