"""The controller's decisions, pinned by readable transcripts in testdata/."""

from pathlib import Path

import pytest

from tests.cluster.transcript import ControllerSession
from tests.support.played_transcript import assert_as_written_down

FILES = sorted((Path(__file__).parent / "testdata").glob("controller_*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_controller_decides_as_written_down(path: Path) -> None:
    assert_as_written_down(path, ControllerSession)


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 5
