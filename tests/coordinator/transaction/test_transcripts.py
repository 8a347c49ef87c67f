"""Transactions, rule by rule, as written down in transcripts/*.txt."""

from pathlib import Path

import pytest

from tests.coordinator.transaction.transcript import TransactionSession
from tests.support.played_transcript import assert_as_written_down

FILES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_transactions_go_as_written_down(path: Path) -> None:
    assert_as_written_down(path, TransactionSession)


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 10
