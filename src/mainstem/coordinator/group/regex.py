"""Subscriptions by regular expression, resolved on the broker as Kafka does: with RE2, on whole topic names.

RE2 takes time in proportion to the name and to the size of the pattern, whatever the two say. Patterns of a
size that no subscription needs are refused, so that neither reading nor matching one holds up the broker.
Internal topics are names like any other here.
"""

from functools import lru_cache
from typing import Any, Final

from mainstem.protocol.errors import ErrorCode, KafkaError

# Kafka has no limits of its own, except that the key of its record holds no longer pattern than this.
_BYTES_MAX: Final = 32_767
# Classes such as \pL take RE2 a hundred times as long to read as anything else of their length; the names of
# topics are ASCII. Repetitions such as x{9} can take their count in time.
_UNICODE_CLASSES_MAX: Final = 100
_REPETITIONS_MAX: Final = 1000
# For the program that RE2 makes of a pattern, and for what it keeps while matching.
_MEMORY_MAX: Final = 1024 * 1024

# What Kafka's RE2 in Java says for what the RE2 in use says.
_DESCRIPTIONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class Pattern:
    """A regular expression, ready to match."""

    __slots__ = ("_fullmatch", "size")

    def __init__(self, compiled: Any) -> None:
        self._fullmatch = compiled.fullmatch
        # How much there is to do, at worst, for each character of a name.
        self.size: int = compiled.programsize

    def matches(self, name: str) -> bool:
        """The name as a whole."""
        return self._fullmatch(name.encode()) is not None


@lru_cache(maxsize=128)
def compile_pattern(pattern: str) -> Pattern:
    """KafkaError (INVALID_REGULAR_EXPRESSION) unless it is one."""
    _check_size(pattern)
    # Imported here: most brokers never see a pattern, and all of them start.
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_MAX
    try:
        return Pattern(re2.compile(pattern, options))
    except re2.error as failure:
        said, _, _ = failure.args[0].decode().partition(": ")
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: "
            f"{_DESCRIPTIONS.get(said, said)}.",
        ) from None


def _check_size(pattern: str) -> None:
    unicode_classes = pattern.count("\\p") + pattern.count("\\P")
    if (
        len(pattern.encode()) > _BYTES_MAX
        or unicode_classes > _UNICODE_CLASSES_MAX
        or pattern.count("{") > _REPETITIONS_MAX
    ):
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex has more than {_BYTES_MAX} bytes, {_UNICODE_CLASSES_MAX} Unicode classes "
            f"or {_REPETITIONS_MAX} repetitions.",
        )
