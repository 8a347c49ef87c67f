"""Offsets in transactions, rule by rule, as written down in transcripts/txn_offsets_*.txt."""

import os
from pathlib import Path

import pytest

from tests.coordinator import txn_offsets_transcript

FILES = sorted((Path(__file__).parent / "transcripts").glob("txn_offsets_*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_offsets_in_transactions_behave_as_written_down(path: Path) -> None:
    expected = path.read_text()
    outcome = txn_offsets_transcript.run(expected)
    if os.environ.get("MAINSTEM_RECORD_TRANSCRIPTS"):
        path.write_text(outcome)
    assert outcome == path.read_text()


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 4
