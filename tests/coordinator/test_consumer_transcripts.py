"""Consumer groups (KIP-848), rule by rule, as written down in transcripts/consumer_*.txt."""

from pathlib import Path

import pytest

from tests.coordinator.consumer_transcript import ConsumerSession
from tests.support.played_transcript import assert_as_written_down

FILES = sorted((Path(__file__).parent / "transcripts").glob("consumer_*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_consumer_group_behaves_as_written_down(path: Path) -> None:
    assert_as_written_down(path, ConsumerSession)


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 10
