"""The commands of docs/performance.md exist; the benchmark takes too long to be run here."""

import re
import subprocess

from tests.docs.reader import ROOT

_COMMAND = re.compile(r"^(bench/run.*?)(?:\s+#.*)?$", re.M)


def test_the_benchmark_knows_every_option_that_the_page_uses() -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    used = {option for command in _COMMAND.findall(page) for option in re.findall(r"--[\w-]+", command)}
    assert used
    shown = subprocess.run(
        [ROOT / "bench" / "run", "--help"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert {option for option in used if option not in shown} == set()
