"""The page about settings is the one that the declarations make."""

import subprocess
import sys
from pathlib import Path

from mainstem.config.docs import page
from mainstem.config.tables import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "the declarations changed: run python -m mainstem.config.docs docs/configuration.md"
    )


def test_every_setting_is_on_the_page_once() -> None:
    rows = [line.split("`")[1] for line in page().splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted([*BROKER_SETTINGS, *TOPIC_SETTINGS, *GROUP_SETTINGS])


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    command = [sys.executable, "-m", "mainstem.config.docs"]
    subprocess.run([*command, str(path)], check=True)
    printed = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    assert path.read_text(encoding="utf-8") == printed == page()
