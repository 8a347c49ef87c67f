"""What replicas of a partition do in a few scenarios, pinned by transcripts that a person can read."""

from pathlib import Path

import pytest

from tests.replication.transcript import ReplicaSession
from tests.support.played_transcript import assert_as_written_down

FILES = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_replicas_do_as_written_down(path: Path) -> None:
    assert_as_written_down(path, ReplicaSession)


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 4
