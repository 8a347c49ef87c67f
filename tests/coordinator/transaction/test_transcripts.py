"""Transactions, rule by rule, as written down in transcripts/*.txt."""

import os
from pathlib import Path

import pytest

from tests.coordinator.transaction import transcript

FILES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_transactions_go_as_written_down(path: Path) -> None:
    expected = path.read_text()
    outcome = transcript.run(expected)
    if os.environ.get("MAINSTEM_RECORD_TRANSCRIPTS"):
        path.write_text(outcome)
    assert outcome == path.read_text()


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 10
