"""Kafka's rules for topic names.

Metric names turn "." into "_", so two topics that differ only in these would share their metrics: Kafka
refuses the second of such a pair, and so must we.
"""

import re
from collections.abc import Mapping

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
NAME_LENGTH_MAX = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def name_problem(name: str) -> str | None:
    """What is wrong with a topic name, or None."""
    if not name:
        return "A topic name must not be empty."
    if name in {".", ".."}:
        return f"A topic cannot be named {name!r}: as a folder name it has another meaning."
    if len(name) > NAME_LENGTH_MAX:
        return f"The topic name has {len(name)} characters, at most {NAME_LENGTH_MAX} are allowed."
    if _LEGAL.fullmatch(name) is None:
        return f"The topic name {name!r} may hold only ASCII letters, digits, '.', '_' and '-'."
    return None


def can_collide(name: str) -> bool:
    return "." in name or "_" in name


def normal_form(name: str) -> str:
    """Equal for names that collide."""
    return name.replace(".", "_")


def colliding_name(name: str, names_by_normal_form: Mapping[str, tuple[str, ...]]) -> str | None:
    """An existing other topic whose name differs from `name` only by '.' and '_'."""
    if not can_collide(name):
        return None
    others = names_by_normal_form.get(normal_form(name), ())
    return next((other for other in others if other != name), None)
