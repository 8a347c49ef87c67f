"""The fenced blocks of a Markdown page. Only the little of Markdown that the pages use is understood."""

import re
from typing import NamedTuple

# Languages whose blocks are commands; everything else is for reading (settings, output, tables). What is for
# several machines is `sh`: test_cluster_page.py runs it.
COMMAND_LANGUAGES = frozenset({"bash", "console", "python"})
READING_LANGUAGES = frozenset({"text", "properties", "json", "yaml", "sql", "sh"})

_FENCE = re.compile(r"^```([\w-]*)[ ]*(\S*)\n(.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """One fenced block; `argument` is the word behind the language, the name of a file to be written."""

    language: str
    argument: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """All fenced blocks in their order."""
    found = []
    for match in _FENCE.finditer(page):
        line = page.count("\n", 0, match.start()) + 1
        found.append(Block(match[1], match[2], match[3], line))
    return found


def commands(page: str) -> list[Block]:
    """The blocks that a reader would run, or write to a file."""
    return [block for block in blocks(page) if block.language in COMMAND_LANGUAGES or block.argument]


def console_steps(text: str) -> list[tuple[str, str]]:
    """A console session as pairs of a command and the output shown below it."""
    steps: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        else:
            command, output = steps[-1]
            steps[-1] = (command, f"{output}{line}\n")
    return steps


def matches(expected: str, actual: str) -> bool:
    """Whether the output is what the page shows; `...` stands for anything, also for whole lines."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
    return re.fullmatch(pattern, actual.strip(), re.S) is not None
