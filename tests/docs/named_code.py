"""What a page for developers names of the code: files, functions, classes. Each is to be there, or the page
misleads.

In inline code, a path is relative to the repository or to `src/mainstem`, and a name may follow it after a
colon (`broker/node.py:Node.start`); a name with `()` is a function or method, and a capitalised one a class.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mainstem.protocol.registry import API_KEYS

ROOT = Path(__file__).parents[2]
_FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
_INLINE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?P<path>[\w.*-]*(?:/[\w.*-]*)+|\w+\.(?:py|md|toml))(?::(?P<name>[\w.]+))?(?:\(\))?")
_FUNCTION = re.compile(r"(?:\w+\.)*(\w+)\(\)")
_CLASS = re.compile(r"(?:[A-Z][a-z0-9]+){2,}|[A-Z][a-z]{3,}")
_MODULE = re.compile(r"python -m ([\w.]+)")
_BASES = (ROOT, ROOT / "src/mainstem", ROOT / "src")
_NOT_OURS = {info.name for info in API_KEYS.values()}


def missing(page: str) -> Iterator[str]:
    """What the page names and nobody has."""
    for span in _INLINE.findall(_FENCED.sub("", page)):
        if " " in span:  # a command: the module it runs, the files and folders it is given
            module = _MODULE.search(span)
            paths = [f"{module[1].replace('.', '/')}.py"] if module else []
            paths += [word for word in span.split() if "/" in word and not word.startswith(("./", "."))]
            if not all(_is_there(path, None) for path in paths):
                yield span
        elif match := _PATH.fullmatch(span):
            if not _is_there(match["path"], match["name"]):
                yield span
        elif match := _FUNCTION.fullmatch(span):
            if match[1] not in _defined(("src", "tests", "bench")):
                yield span
        elif _CLASS.fullmatch(span) and span not in _NOT_OURS and span not in _defined(("src", "tests")):
            yield span


def _is_there(path: str, name: str | None) -> bool:
    # A name alone, such as conftest.py, may be that of several files.
    pattern = path.strip("/") if "/" in path else f"**/{path}"
    folders = _BASES if "/" in path else (ROOT / "src", ROOT / "tests", ROOT / "docs")
    found = [file for folder in folders for file in folder.glob(pattern)]
    return any(name is None or name in _names_in(file) for file in found)


@cache
def _names_in(file: Path) -> frozenset[str]:
    """Functions, classes, their methods and fields, and what a module assigns at its top."""
    names = set()
    module = ast.parse(file.read_text())
    for node in module.body:
        names |= set(_names_of(node))
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{name}" for inner in node.body for name in _names_of(inner)}
    return frozenset(names)


def _names_of(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                yield target.id


@cache
def _defined(folders: tuple[str, ...]) -> frozenset[str]:
    """Every name of a function, a class or a method."""
    names: set[str] = set()
    for folder in folders:
        for file in (ROOT / folder).rglob("*.py"):
            names |= {part for name in _names_in(file) for part in name.split(".")}
    return frozenset(names)
