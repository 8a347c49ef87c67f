"""Consumer groups (KIP-848), rule by rule, as written down in transcripts/consumer_*.txt."""

import os
from pathlib import Path

import pytest

from tests.coordinator import consumer_transcript

FILES = sorted((Path(__file__).parent / "transcripts").glob("consumer_*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_consumer_group_behaves_as_written_down(path: Path) -> None:
    expected = path.read_text()
    outcome = consumer_transcript.run(expected)
    if os.environ.get("MAINSTEM_RECORD_TRANSCRIPTS"):
        path.write_text(outcome)
    assert outcome == path.read_text()


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 10
