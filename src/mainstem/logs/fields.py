"""What an event is about, apart from its text: topic, partition, offset, cause and whatever else there is.

Programs look events up by these fields. They come from `about`, and from the arguments of the text itself: a
partition or a log among them gives topic and partition, an exception gives the cause.
"""

import logging
from typing import Any

_ATTRIBUTE = "about"


def about(
    place: object = None,
    *,
    folder: str | None = None,
    offset: int | None = None,
    cause: object = None,
    client: str | None = None,
    **others: object,
) -> dict[str, Any]:
    """For the `extra` of a call of the logger. `place` is a partition or its log, `folder` where one is kept.
    `client` is whose doing the event is: if it causes too many of them, not all are shown.
    """
    fields = _place(place) if folder is None else _folder(folder)
    for name, value in (("offset", offset), ("client", client), *others.items()):
        if value is not None:
            fields[name] = value
    if cause is not None:
        fields.update(_cause(cause))
    return {_ATTRIBUTE: fields}


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """All fields of an event."""
    fields: dict[str, Any] = {}
    for argument in record.args if isinstance(record.args, tuple) else ():
        if isinstance(argument, BaseException):
            fields.update(_cause(argument))
        else:
            fields.update(_place(argument))
    if record.exc_info and record.exc_info[1] is not None:
        fields.update(_cause(record.exc_info[1]))
    fields.update(getattr(record, _ATTRIBUTE, {}))
    return fields


def _place(place: object) -> dict[str, Any]:
    topic = getattr(place, "topic", None)
    if not isinstance(topic, str):
        return {}
    index = getattr(place, "index", None)
    partition = index if isinstance(index, int) else getattr(place, "partition", None)
    return {"topic": topic, "partition": partition} if isinstance(partition, int) else {"topic": topic}


def _folder(folder: str) -> dict[str, Any]:
    """What the name of a partition's folder says."""
    topic, _, index = folder.rstrip("/").rpartition("/")[2].rpartition("-")
    return {"topic": topic, "partition": int(index)} if topic and index.isdecimal() else {"folder": folder}


def _cause(cause: object) -> dict[str, Any]:
    if not isinstance(cause, BaseException):
        return {"cause": str(cause)}
    text = str(cause) or type(cause).__name__
    code = getattr(cause, "code", None)  # of an error of the protocol
    name = getattr(code, "name", None)
    return {"cause": text, "error": name if isinstance(name, str) else type(cause).__name__}
