"""Links between the pages lead somewhere, also to the heading they name."""

import re
from pathlib import Path

import pytest

from tests.docs import test_commands, test_internals

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.M)


def _anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*test_commands.PAGES, *test_internals.PAGES], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text()):
        if target.startswith(("https://", "http://")):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in _anchors(linked), f"{page.name}: {target}"
