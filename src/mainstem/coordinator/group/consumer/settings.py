"""The settings that a consumer group can have of its own; the broker's stand in for those it has not.

Every heartbeat needs them, so they are looked up once and kept until the cluster's metadata changes.
"""

from typing import NamedTuple

from mainstem.coordinator.group.state import GroupState


class GroupSettings(NamedTuple):
    """What is in force for one group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class Settings:
    """The settings of all groups of one machine."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self._version: int | None = None
        self._known: dict[str, GroupSettings] = {}

    def of(self, group_id: str) -> GroupSettings:
        # What groups and brokers are given is metadata too, whose version grows with every record.
        version = self._state.topics.version
        if version != self._version:
            self._version = version
            self._known.clear()
        known = self._known.get(group_id)
        if known is None:
            known = self._known[group_id] = GroupSettings(
                self._value(group_id, "consumer.session.timeout.ms"),
                self._value(group_id, "consumer.heartbeat.interval.ms"),
                self._value(group_id, "consumer.assignment.interval.ms"),
            )
        return known

    def default_assignor(self) -> str:
        """The first of the list is the one for groups that ask for none."""
        assignors: tuple[str, ...] = self._state.config.get("group.consumer.assignors")
        return assignors[0]

    def _value(self, group_id: str, name: str) -> int:
        """A group's `consumer.x` is the broker's `group.consumer.x`."""
        own = self._state.group_config(group_id).get(name)
        return int(own) if own is not None else self._state.config.get(f"group.{name}")
