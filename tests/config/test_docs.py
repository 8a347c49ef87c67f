"""The pages about settings are the ones that the declarations make."""

import subprocess
import sys
from pathlib import Path

from mainstem.config.docs import pages
from mainstem.config.tables import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_are_current() -> None:
    for name, text in pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, (
            "the declarations changed: run python -m mainstem.config.docs docs"
        )


def test_every_setting_is_once_on_the_page_where_it_belongs() -> None:
    declared = [*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values(), *GROUP_SETTINGS.values()]
    for name, acted_on in (("configuration.md", True), ("configuration-others.md", False)):
        rows = [line.split("`")[1] for line in pages()[name].splitlines() if line.startswith("| `")]
        assert sorted(rows) == sorted(setting.name for setting in declared if setting.acted_on is acted_on)


def test_the_command_writes_the_pages(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "mainstem.config.docs", str(tmp_path)], check=True)
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == pages()
