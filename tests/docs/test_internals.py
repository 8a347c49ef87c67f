"""The map of the house: what the pages for developers name is where they say."""

from pathlib import Path

import pytest

from tests.docs.named_code import missing

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs/internals").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_that_a_page_names_is_there(page: Path) -> None:
    assert list(missing(page.read_text())) == []


def test_every_room_is_on_the_map() -> None:
    source, page = ROOT / "src/mainstem", (ROOT / "docs/internals/README.md").read_text()
    rooms = [
        folder.relative_to(source)
        for above in (source, source / "broker", source / "cluster")
        for folder in above.iterdir()
        if (folder / "__init__.py").exists()
    ]
    assert len(rooms) > 20
    assert [str(room) for room in rooms if f"`{room}/" not in page] == []


@pytest.mark.parametrize(
    "named",
    [
        "broker/nothing.py",
        "src/mainstem/broker/node.py:Node.fly",
        "broker/no_such_room/",
        "tests/docs/test_nothing.py",
        "no_such_function()",
        "Node.no_such_method()",
        "NoSuchClass",
        "./test --quick tests/config tests/no_such_folder",
        ".venv/bin/python -m mainstem.no_such_module docs",
    ],
)
def test_what_is_not_there_is_found(named: str) -> None:
    assert list(missing(f"First `acks`, then\n`{named}` and `broker/node.py`.")) == [named]


def test_what_is_there_is_not_complained_about() -> None:
    page = "`broker/node.py:Node.start`, `tests/docs/`, `Node`, `start()`, `broker/apis/k*_fetch.py`, `Fetch`"
    assert list(missing(page)) == []
