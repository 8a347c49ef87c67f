"""Puts a report into docs/performance.md: a table for each subject, between its markers.

A subject's table is replaced only as a whole, with the command, commit and machine that made it below.
"""

from pathlib import Path

from bench.errors import BenchError
from bench.peers import REPOSITORY
from bench.phases import SUBJECTS
from bench.report import Report, markdown_table

PAGE = REPOSITORY / "docs" / "performance.md"


def begin_of(subject: str) -> str:
    return f"<!-- {subject}: made by bench/run --only {subject} --write-docs, do not edit by hand -->"


def end_of(subject: str) -> str:
    return f"<!-- end of {subject} -->"


def complete_subjects(phases: set[str]) -> list[str]:
    """The subjects whose phases are all among these."""
    return [name for name, all_of in SUBJECTS.items() if phases.issuperset(phase.name for phase in all_of)]


def write_page(report: Report, page: Path = PAGE) -> None:
    text = page.read_text()
    for subject in complete_subjects({row["phase"] for row in report["rows"]}):
        names = {phase.name for phase in SUBJECTS[subject]}
        rows = [row for row in report["rows"] if row["phase"] in names]
        text = replace_section(text, subject, markdown_table({**report, "rows": rows}))
    page.write_text(text)


def replace_section(text: str, subject: str, table: str) -> str:
    before, begin, rest = text.partition(begin_of(subject))
    _, end, after = rest.partition(end_of(subject))
    if not begin or not end:
        raise BenchError(f"the page has lost its markers '{begin_of(subject)}' and '{end_of(subject)}'")
    return f"{before}{begin}\n\n{table.strip()}\n\n{end}{after}"
