"""What can be wrong with a write, as exceptions whose text says what happened and what to do.

Spark shows the text of a Python exception after a long trace, so the text has to stand alone.
"""


class SinkError(Exception):
    """Rows could not be written."""


class RecordTooLargeError(SinkError):
    """A record that is larger than a request may be. Nothing of it is sent."""

    def __init__(self, topic: str, size: int, size_max: int) -> None:
        super().__init__(
            f"a record for the topic {topic} is {size} bytes when serialized which is larger than "
            f"{size_max}, which is the value of kafka.max.request.size: raise that option and the topic's "
            "max.message.bytes, or write smaller records"
        )


class SinkOptionError(SinkError, ValueError):
    """An option has a name or a value that the sink does not take."""


class SinkSchemaError(SinkError, ValueError):
    """The columns of the DataFrame are not those of records."""


class StagingError(SinkError):
    """Staged data is not there, or is not what its task has written."""
