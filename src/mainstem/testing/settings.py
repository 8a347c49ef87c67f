"""Broker settings as a test writes them (`{"num.partitions": 3, "auto.create.topics.enable": False}`)."""

from __future__ import annotations

from collections.abc import Mapping

SettingValue = str | int | float | bool

# What differs from Kafka's defaults: the first member of a group need not wait for others to come.
_DEFAULTS = {"group.initial.rebalance.delay.ms": "0"}


def setting_text(value: SettingValue) -> str:
    """The value as Kafka's properties spell it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def setting_texts(settings: Mapping[str, SettingValue] | None) -> dict[str, str]:
    """Every setting, spelled for the broker, and what tests want unless they say otherwise."""
    return _DEFAULTS | {name: setting_text(value) for name, value in (settings or {}).items()}
