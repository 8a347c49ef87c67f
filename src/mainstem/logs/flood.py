"""Keeps clients from filling the disk with the broker's log: of one kind of event about them only so many are
shown in a while, with a count of those left out. What says something about data is always shown.
"""

import logging
from typing import Final

from mainstem.logs.fields import fields_of

_EVENTS_MAX: Final = 20
_WINDOW_SECONDS: Final = 10.0


class _Place:
    """Where in the source an event comes from."""

    __slots__ = ("began", "left_out", "shown")

    def __init__(self, began: float) -> None:
        self.began = began
        self.shown = 0
        self.left_out = 0


class FloodGuard(logging.Filter):
    """Lets pass what is not about a client."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[tuple[str, int], _Place] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if "client" not in fields_of(record):
            return True
        key = (record.pathname, record.lineno)
        place = self._places.setdefault(key, _Place(record.created))
        if not 0 <= record.created - place.began < _WINDOW_SECONDS:
            place.began = record.created
            place.shown = 0
        if place.shown >= _EVENTS_MAX:
            place.left_out += 1
            return False
        place.shown += 1
        record.left_out, place.left_out = place.left_out, 0
        return True
