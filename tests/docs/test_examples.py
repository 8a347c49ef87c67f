"""The projects in examples/ are the ones that the pages show, and run."""

import re

from tests.docs.markdown import blocks
from tests.docs.reader import ROOT

_EXAMPLE = ROOT / "examples" / "spark-pipelines"


def test_the_project_for_spark_pipelines_is_the_one_that_its_page_runs() -> None:
    page = (ROOT / "docs" / "spark-declarative-pipelines.md").read_text()
    shown = {block.argument: block.text for block in blocks(page) if block.argument}
    (spec,) = re.findall(r"cat > spark-pipeline.yml <<END\n(.*?)END\n", page, re.S)
    shown["spark-pipeline.yml"] = re.sub(r"^storage: .*$", "storage: DIR", spec, flags=re.M)
    files = {
        str(file.relative_to(_EXAMPLE)): re.sub(
            r"^storage: .*$", "storage: DIR", file.read_text(), flags=re.M
        )
        for file in _EXAMPLE.rglob("*.*")
        if file.suffix in (".py", ".sql", ".yml")
    }
    assert shown == files
