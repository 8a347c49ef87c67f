"""What docs/pipelines.md says of pipeline files is true: its examples have no mistakes, its keys are all
there are."""

from pathlib import Path

from mainstem.spark.pipeline.checking.validate import checked
from mainstem.spark.pipeline.file.reader import parse
from tests.docs.markdown import blocks
from tests.spark.pipeline.reference import reference

PAGE = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text()


def test_the_files_on_the_page_have_no_mistakes() -> None:
    files = [block for block in blocks(PAGE) if block.text.startswith("pipeline:")]
    assert files
    for block in files:
        document = checked(parse(block.text, "pipelines.md"))
        assert [document.describe(problem) for problem in document.problems] == []


def test_the_reference_is_what_is_declared() -> None:
    assert "## Every key" + PAGE.partition("## Every key")[2] == reference()
