"""The settings that a consumer group can have of its own; the broker's stand in for those it has not."""

from typing import Any

from mainstem.coordinator.group.state import GroupState


def _setting(state: GroupState, group_id: str, name: str) -> int:
    """A group's `consumer.x` is the broker's `group.consumer.x`."""
    own: Any = state.group_config(group_id).get(name)
    return int(own) if own is not None else state.config.get(f"group.{name}")


def session_timeout_ms(state: GroupState, group_id: str) -> int:
    return _setting(state, group_id, "consumer.session.timeout.ms")


def heartbeat_interval_ms(state: GroupState, group_id: str) -> int:
    return _setting(state, group_id, "consumer.heartbeat.interval.ms")


def assignment_interval_ms(state: GroupState, group_id: str) -> int:
    return _setting(state, group_id, "consumer.assignment.interval.ms")


def default_assignor(state: GroupState) -> str:
    """The first of the list is the one for groups that ask for none."""
    assignors: tuple[str, ...] = state.config.get("group.consumer.assignors")
    return assignors[0]
