"""Classic groups, rule by rule, as written down in transcripts/classic_*.txt."""

from pathlib import Path

import pytest

from tests.coordinator.classic_transcript import ClassicSession
from tests.support.played_transcript import assert_as_written_down

FILES = sorted((Path(__file__).parent / "transcripts").glob("classic_*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_classic_group_behaves_as_written_down(path: Path) -> None:
    assert_as_written_down(path, ClassicSession)


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 10
