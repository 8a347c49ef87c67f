"""Reads as much of a SQL text as is needed without a SQL engine: its tokens, and the tables that it names.

Which views a query reads decides the order of the steps, and must be known before Spark starts. The grammar
itself is Spark's to check.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<word>[^\W\d]\w*)
  | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\w*|\.\d+\w*)
  | (?P<symbol><=>|\|>|->|::|[-+*/%&|^~=<>!,.;:()\[\]?@#$])
    """,
    re.VERBOSE | re.DOTALL,
)
# Functions in whose brackets FROM does not name a table.
_FROM_INSIDE = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION"})
_END_OF_FROM = frozenset(
    [
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "LIMIT",
        "OFFSET",
        "UNION",
        "INTERSECT",
        "EXCEPT",
        "MINUS",
        "WINDOW",
        "SELECT",
        "QUALIFY",
    ]
)
_OPENING = {"(": ")", "[": "]"}


class SqlError(ValueError):
    """The text cannot be SQL; `position` says where."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class Token(NamedTuple):
    kind: str  # string, quoted, word, number or symbol
    text: str
    position: int

    @property
    def keyword(self) -> str:
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text


class Reference(NamedTuple):
    """A table that a query names, with the parts before it (catalog, schema)."""

    name: str
    position: int
    qualified: bool = False


def tokens(text: str) -> list[Token]:
    """The tokens without space and comments; SqlError for quotes that do not close and odd characters."""
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or (match["symbol"] == "/" and text.startswith("/*", position)):
            here = text[position]
            if here in "'\"`":
                raise SqlError(f"a quote {here} is not closed", position)
            message = "a comment is not closed" if here == "/" else f"{here!r} does not belong into SQL"
            raise SqlError(message, position)
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup or "", match[0], position))
        position = match.end()
    return found


def check(text: str) -> list[Token]:
    """The tokens of a text in which quotes and brackets close; SqlError otherwise."""
    found = tokens(text)
    if not found:
        raise SqlError("there is nothing in it", 0)
    waiting: list[Token] = []
    for token in found:
        if token.kind != "symbol":
            continue
        if token.text in _OPENING:
            waiting.append(token)
        elif token.text in ")]" and (not waiting or _OPENING[waiting.pop().text] != token.text):
            raise SqlError(f"{token.text!r} closes nothing", token.position)
    if waiting:
        raise SqlError(f"{waiting[-1].text!r} is not closed", waiting[-1].position)
    return found


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """A position in a text as line and column, from 0."""
    before = text[:position]
    return before.count("\n"), position - (before.rfind("\n") + 1)


def table_references(text: str) -> list[Reference]:
    """The tables that a query reads, in order; names that the query defines itself (WITH) left out."""
    found = check(text)
    defined = _common_tables(found)
    references = [found[index] for index in _table_positions(found)]
    result: list[Reference] = []
    for token in references:
        index = found.index(token)
        qualified = index + 1 < len(found) and found[index + 1].text == "."
        own = any(name == token.name.lower() and token.position > end for name, end in defined)
        if not own:
            result.append(Reference(token.name, token.position, qualified))
    return result


def _common_tables(found: list[Token]) -> list[tuple[str, int]]:
    """The names after WITH, each with the position from which on it is known."""
    result: list[tuple[str, int]] = []
    for index, token in enumerate(found):
        if token.keyword != "WITH":
            continue
        at = index + 1
        if at < len(found) and found[at].keyword == "RECURSIVE":
            at += 1
        while at < len(found) and found[at].kind in ("word", "quoted"):
            name = found[at].name.lower()
            at += 1
            if at < len(found) and found[at].text == "(":  # the names of its columns
                at = _closing(found, at) + 1
            if at + 1 >= len(found) or found[at].keyword != "AS" or found[at + 1].text != "(":
                break
            end = _closing(found, at + 1)
            result.append((name, found[end].position))
            at = end + 1
            if at >= len(found) or found[at].text != ",":
                break
            at += 1
    return result


def _closing(found: list[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(found)):
        if found[index].kind == "symbol" and found[index].text in "()":
            depth += 1 if found[index].text == "(" else -1
            if depth == 0:
                return index
    return len(found) - 1


class _Scope:
    """One pair of brackets: the function that they belong to, and whether its FROM list is open."""

    def __init__(self, function: str = "") -> None:
        self.function = function
        self.in_from = False


def _table_positions(found: list[Token]) -> list[int]:
    scopes = [_Scope()]
    result: list[int] = []
    for index, token in enumerate(found):
        scope = scopes[-1]
        word = token.keyword
        if token.kind == "symbol" and token.text == "(":
            scopes.append(_Scope(found[index - 1].keyword if index else ""))
        elif token.kind == "symbol" and token.text == ")":
            scopes.pop()
        elif word == "FROM" and scope.function not in _FROM_INSIDE and not _is_distinct(found, index):
            scope.in_from = True
            _add_table(found, index + 1, result)
        elif word == "JOIN" or (scope.in_from and token.text == "," and token.kind == "symbol"):
            _add_table(found, index + 1, result)
        elif word in _END_OF_FROM or (word == "LATERAL" and _word(found, index + 1) == "VIEW"):
            scope.in_from = False
    return result


def _is_distinct(found: list[Token], index: int) -> bool:
    return _word(found, index - 1) == "DISTINCT" and _word(found, index - 2) in ("IS", "NOT")


def _word(found: list[Token], index: int) -> str:
    return found[index].keyword if 0 <= index < len(found) else ""


def _add_table(found: list[Token], index: int, result: list[int]) -> None:
    while _word(found, index) in ("LATERAL", "STREAM", "ONLY"):
        index += 1
    if index >= len(found) or found[index].kind not in ("word", "quoted"):
        return
    if index + 1 < len(found) and found[index + 1].text == "(":  # a table function, or VALUES (...)
        return
    if found[index].keyword not in ("VALUES", "SELECT", "TABLE"):
        result.append(index)


def place_with_blanks(text: str, line: int, column: int) -> tuple[int, int]:
    """Line and column from 0 in a text, of the place that Spark names (lines from 1) in the same text without
    its first blanks."""
    before = text[: len(text) - len(text.lstrip())]
    if line == 1:
        column += len(before) - (before.rfind("\n") + 1)
    return line - 1 + before.count("\n"), column
