"""Every command in the README and in docs/ is run, in the order in which a reader meets it."""

from pathlib import Path

import pytest

from tests.docs.markdown import COMMAND_LANGUAGES, READING_LANGUAGES, Block, blocks, commands
from tests.docs.reader import ROOT, Reader, uses_spark

PAGE_TIMEOUT_S = 300
SPARK_PAGE_TIMEOUT_S = 2000
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Its only command is the benchmark, see test_performance_page.py.
RUN_HERE = [page for page in PAGES if page.name != "performance.md"]


def _is_demo(block: Block) -> bool:
    """It takes a minute as it stands; tests/cli/test_demo.py runs the same with fewer orders."""
    return block.text == "./mainstem demo\n"


def _page_parameter(page: Path) -> object:
    """A page that uses a program which is no Python wheel is left out by `./test --quick`."""
    texts = [block.text for block in commands(page.read_text()) if not _is_demo(block)]
    marks = [pytest.mark.timeout(SPARK_PAGE_TIMEOUT_S if any(map(uses_spark, texts)) else PAGE_TIMEOUT_S)]
    if any("kcat" in text or uses_spark(text) for text in texts):
        marks.append(pytest.mark.peer)
    return pytest.param(page, id=page.name, marks=marks)


@pytest.mark.parametrize("page", [_page_parameter(page) for page in RUN_HERE if commands(page.read_text())])
def test_the_commands_of_a_page_work(page: Path, tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        for block in commands(page.read_text()):
            if not _is_demo(block):
                reader.follow(block)


@pytest.mark.soak
@pytest.mark.peer
@pytest.mark.timeout(SPARK_PAGE_TIMEOUT_S)
def test_the_demo_of_the_readme_works(tmp_path: Path) -> None:
    (block,) = filter(_is_demo, commands((ROOT / "README.md").read_text()))
    with Reader(tmp_path) as reader:
        reader.follow(block)


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    text = page.read_text()
    assert text.count("\n```") == 2 * len(blocks(text)), "a fence is not closed or is indented"
    for block in blocks(text):
        assert block.language in COMMAND_LANGUAGES | READING_LANGUAGES, (
            f"line {block.line}: {block.language!r}"
        )
