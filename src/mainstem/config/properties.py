"""Java's .properties syntax, the form of a server.properties file.

Comments, continued lines, escapes and the three separators work as in Java. A file is read as UTF-8 and,
where that is impossible, as ISO-8859-1. Nothing here knows what a setting is.
"""

from collections.abc import Iterator
from os import PathLike

from mainstem.config.definition import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def load_properties(path: str | PathLike[str]) -> dict[str, str]:
    """The names and texts of a properties file; a file that cannot be read raises ConfigError."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error.strerror or error}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    try:
        return parse_properties(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}") from None


def parse_properties(text: str) -> dict[str, str]:
    """The names and texts in `text`; a name that is given twice keeps its last text."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        name, value = _split(line)
        properties[_unescape(name, number)] = _unescape(value, number)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined and comments left out, each with the number of its first line."""
    pending, first = "", 0
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = natural.lstrip(_BLANKS)
        if not pending:
            first = number
            if not line or line[0] in "#!":
                continue
        if _continues(line):
            pending += line[:-1]
            # A continued line that is empty so far must still count as begun.
            pending = pending or "\\\n"
            continue
        yield first, pending.removeprefix("\\\n") + line
        pending = ""
    if pending:
        yield first, pending.removeprefix("\\\n")


def _continues(line: str) -> bool:
    """An odd number of backslashes at the end: the last one escapes the line's end."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """The raw name and value: parted by the first bare `=`, `:` or blank, with blanks around it ignored."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    name, rest = line[:position], line[position:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return name, rest


def _unescape(raw: str, line_number: int) -> str:
    if "\\" not in raw:
        return raw
    out: list[str] = []
    position = 0
    while position < len(raw):
        char = raw[position]
        position += 1
        if char != "\\" or position == len(raw):
            out.append(char if char != "\\" else "")
            continue
        escaped = raw[position]
        position += 1
        if escaped == "u":
            digits = raw[position : position + 4]
            if len(digits) != 4 or not _HEX_DIGITS.issuperset(digits):
                raise ConfigError(f"line {line_number}: \\u must be followed by four hexadecimal digits")
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Two escapes may spell the halves of one character.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
