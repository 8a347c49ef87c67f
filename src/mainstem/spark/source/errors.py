"""What the data source refuses, as sentences for the person who wrote the query.

Spark shows an error of a Python data source with its traceback; the last line is the one below.
"""


class OptionError(ValueError):
    """An option that does not exist, has a wrong value, or does not go with the others."""


class OffsetsError(ValueError):
    """Offsets that do not fit the topics that are read."""


class TopicMissingError(OffsetsError):
    """A topic or partition that does not exist, or is so new that not every broker knows it."""


class DataLossError(RuntimeError):
    """Records that the query has to read are not in the cluster any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason} Records may have been lost: they were aged out, or their topic was deleted, before "
            "they were read. To go on without them, set the option failOnDataLoss to false."
        )


class ReadError(RuntimeError):
    """The cluster did not give what it should have."""
