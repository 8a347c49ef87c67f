"""Subscriptions by regular expression, resolved on the broker as Kafka does: with RE2, on whole topic names.

RE2 takes time in proportion to the name whatever the pattern, so no client can stall the broker with one.
Internal topics are names like any other here.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from mainstem.protocol.errors import ErrorCode, KafkaError

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


def check(pattern: str) -> None:
    """KafkaError (INVALID_REGULAR_EXPRESSION) unless the pattern is one."""
    _compile(pattern)


def resolve(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """The names that match as a whole; KafkaError as `check`."""
    matches = _compile(pattern).fullmatch
    return frozenset(name for name in names if matches(name))


@lru_cache(maxsize=256)
def _compile(pattern: str) -> Any:
    # Imported here: most brokers never see a pattern, and all of them start.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as failure:
        said, _, _ = failure.args[0].decode().partition(": ")
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: "
            f"{_DESCRIPTIONS.get(said, said)}.",
        ) from None
