"""How an event looks: a line for a person, or an object of JSON in a line.

Texts may hold what a client has sent. No character of it can end a line or command a terminal.
"""

import logging
import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from mainstem.logs.fields import fields_of

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    return _UNPRINTABLE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def _left_out(record: logging.LogRecord) -> int:
    return int(getattr(record, "left_out", 0))


class HumanFormatter(logging.Formatter):
    """Time, level and text. A failure that nobody has foreseen is followed by its traceback, indented."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        line = f"{time} {record.levelname} {printable(record.getMessage())}"
        if _left_out(record):
            line += f" (and {_left_out(record)} more of this kind)"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n    {printable(part)}" for part in trace.splitlines())
        return line


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`, then the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if _left_out(record):
            event["left_out"] = _left_out(record)
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        try:
            return msgspec.json.encode(event, enc_hook=str).decode()
        except UnicodeEncodeError:  # a name that is no Unicode
            return msgspec.json.encode(
                {name: printable(str(value)) for name, value in event.items()}
            ).decode()
