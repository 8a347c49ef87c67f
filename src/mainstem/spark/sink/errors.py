"""What can be wrong with a write, as exceptions whose text says what happened and what to do.

Spark shows the text of a Python exception after a long trace, so the text has to stand alone.
"""


class SinkError(Exception):
    """Rows could not be written."""


class SinkOptionError(SinkError, ValueError):
    """An option has a name or a value that the sink does not take."""


class SinkSchemaError(SinkError, ValueError):
    """The columns of the DataFrame are not those of records."""


class StagingError(SinkError):
    """Staged data is not there, or is not what its task has written."""
