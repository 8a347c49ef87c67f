"""Java's `sasl.jaas.config`: the options of one login module.

Errors never quote the text, because it holds the password.
"""

from __future__ import annotations

import re

from mainstem.wire.errors import InvalidOption, UnsupportedOption

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | "((?:[^"\\\n]|\\.)*)" | '((?:[^'\\\n]|\\.)*)'
    | ([\w.$\-+/@:]+) | ([=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
PASSWORD_MODULES = ("PlainLoginModule", "ScramLoginModule")
TOKEN_MODULE = "OAuthBearerLoginModule"
_EXAMPLE = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="USER" password="PASSWORD";'
)


def parse_jaas(text: str, modules: tuple[str, ...]) -> dict[str, str]:
    """The options of a configuration with one login module, which has to be one of these."""
    words = _words(text)
    if len(words) < 3 or words[1].lower() not in _FLAGS or words[-1] != ";" or words.count(";") != 1:
        raise InvalidOption(f"sasl.jaas.config cannot be read: write it as {_EXAMPLE}")
    module = words[0].rpartition(".")[2]
    if module not in modules:
        raise UnsupportedOption(
            f"the login module {module} of sasl.jaas.config is not supported with this SASL mechanism; "
            f"use {' or '.join(modules)}"
        )
    given = words[2:-1]
    if len(given) % 3 or any(sign != "=" for sign in given[1::3]):
        raise InvalidOption(f"sasl.jaas.config cannot be read: write it as {_EXAMPLE}")
    values = dict(zip(given[0::3], given[2::3], strict=True))
    if values.get("tokenauth", "false").lower() == "true":
        raise UnsupportedOption("delegation tokens are not supported: take tokenauth out of sasl.jaas.config")
    return values


class _Sign(str):
    """`=` or `;` as a sign, unlike the same in quotes."""

    __slots__ = ()


def _words(text: str) -> list[str]:
    words: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidOption(f"sasl.jaas.config cannot be read: write it as {_EXAMPLE}")
        position = match.end()
        double, single, bare, sign = match.groups()
        if sign:
            words.append(_Sign(sign))
        elif bare:
            words.append(bare)
        elif double is not None or single is not None:
            words.append(_ESCAPE.sub(_unescape, double if double is not None else single))
    return words


def _unescape(match: re.Match[str]) -> str:
    found = match[1]
    return chr(int(found, 8)) if found[0] in "01234567" else _ESCAPED.get(found, found)
