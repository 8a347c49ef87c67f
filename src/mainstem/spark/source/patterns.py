"""`subscribePattern`: topics are matched with Python's regular expressions, not with Java's.

Most patterns mean the same to both. What only Java understands is refused with what to write instead, also
where Python would take it for something else and match nothing.
"""

from __future__ import annotations

import re
import warnings

from mainstem.spark.source.errors import OptionError

_ESCAPES = {
    "Q": r"write a backslash before each character that is meant as it is, such as a\.b",
    "E": r"write a backslash before each character that is meant as it is, such as a\.b",
    "p": "write the characters themselves, such as [A-Za-z]",
    "P": "write the characters themselves, such as [^A-Za-z]",
    "h": "no topic has blanks in its name; leave it out",
    "H": "write a point",
    "R": "no topic has line breaks in its name; leave it out",
    "z": r"write \Z",
    "k": "write (?P=name)",
}


def matches(pattern: str, topic: str) -> bool:
    """Whether the pattern is found anywhere in the name, as Spark's own connector searches for it."""
    return re.search(pattern, topic) is not None


def check_pattern(pattern: str) -> None:
    """OptionError when it is no pattern, or not the same one as in Java."""
    if not pattern:
        raise OptionError("subscribePattern is empty: it matches no topic")
    _refuse_java(pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(pattern)
    except re.error as error:
        raise OptionError(
            f"subscribePattern is {pattern!r}, which is no regular expression: {error}"
        ) from None


def _refuse_java(pattern: str) -> None:
    is_class = False
    start = position = 0
    while position < len(pattern):
        letter, following = pattern[position], pattern[position + 1 : position + 2]
        if letter == "\\":
            if following in _ESCAPES and following:
                raise _only_java(pattern, f"\\{following}", _ESCAPES[following])
            position += 1
        elif is_class:
            if letter == "[":
                raise _only_java(pattern, "[ within [...]", "write one class with all characters: [abc]")
            if letter == following == "&":
                raise _only_java(
                    pattern,
                    "&& within [...]",
                    "write the characters that are left, such as [a-df-z] for [a-z&&[^e]]",
                )
            # As in Python, the first one is a character of the class.
            is_class = letter != "]" or position == start
        elif letter == "[":
            is_class = True
            start = position + (2 if following == "^" else 1)
        elif pattern.startswith("(?<", position) and pattern[position + 3 : position + 4] not in ("=", "!"):
            raise _only_java(pattern, "(?<name>", "write (?P<name>")
        position += 1


def _only_java(pattern: str, what: str, instead: str) -> OptionError:
    return OptionError(
        f"subscribePattern is {pattern!r}: {what} is of Java's regular expressions, and topics are matched "
        f"with Python's; {instead}"
    )
