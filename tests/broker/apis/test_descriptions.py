"""The first line of each API's file says which versions are served, as the registry has them."""

import ast
import re
from pathlib import Path

import pytest

from mainstem.broker import apis
from mainstem.protocol.registry import API_KEYS

_FILES = sorted(Path(apis.__path__[0]).glob("k*.py"))


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_the_file_names_the_versions_that_are_served(path: Path) -> None:
    head = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[0]
    found = re.match(r"(\w+) \(key (\d+)\), versions? (\d+)(?: (?:to|and) (\d+))?\b", head)
    assert found is not None, head
    name, key, first, last = found[1], int(found[2]), int(found[3]), int(found[4] or found[3])
    info = API_KEYS[key]
    assert (name, first, last) == (info.name, info.min_version, info.max_version)
    assert path.stem == info.module
