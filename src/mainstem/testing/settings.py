"""Broker settings as a test writes them (`{"num.partitions": 3, "auto.create.topics.enable": False}`)."""

from __future__ import annotations

from collections.abc import Mapping

SettingValue = str | int | float | bool


def setting_text(value: SettingValue) -> str:
    """The value as Kafka's properties spell it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def setting_texts(settings: Mapping[str, SettingValue] | None) -> dict[str, str]:
    """Every setting, spelled for the broker."""
    return {name: setting_text(value) for name, value in (settings or {}).items()}
