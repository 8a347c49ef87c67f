"""Puts a report's table into docs/performance.md, between its markers. Leaves the rest of the page alone."""

from pathlib import Path

from bench.errors import BenchError
from bench.peers import REPOSITORY
from bench.report import Report, markdown_table

PAGE = REPOSITORY / "docs" / "performance.md"
BEGIN = "<!-- table: made by bench/run --write-docs, do not edit by hand -->"
END = "<!-- end of table -->"


def write_page(report: Report, page: Path = PAGE) -> None:
    page.write_text(replace_section(page.read_text(), markdown_table(report)))


def replace_section(text: str, table: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BenchError(f"the page has lost its markers '{BEGIN}' and '{END}'")
    return f"{before}{BEGIN}\n\n{table.strip()}\n\n{END}{after}"
