"""Offsets in transactions, rule by rule, as written down in transcripts/txn_offsets_*.txt."""

from pathlib import Path

import pytest

from tests.coordinator.txn_offsets_transcript import TxnOffsetsSession
from tests.support.played_transcript import assert_as_written_down

FILES = sorted((Path(__file__).parent / "transcripts").glob("txn_offsets_*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_offsets_in_transactions_behave_as_written_down(path: Path) -> None:
    assert_as_written_down(path, TxnOffsetsSession)


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 4
