"""What a quorum does in a few scenarios, pinned by transcripts that a person can read."""

from pathlib import Path

import pytest

from tests.cluster.raft.transcript import QuorumSession
from tests.support.played_transcript import assert_as_written_down

FILES = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_quorum_does_as_written_down(path: Path) -> None:
    assert_as_written_down(path, QuorumSession)


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 4
