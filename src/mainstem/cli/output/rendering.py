"""Tables and JSON for the subcommands: pleasant on a terminal, plain and stable in a pipe.

rich is imported only when standard output is a terminal; scripts never pay for it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from mainstem.protocol.resources import TopicPartition, by_topic

Row = Sequence[str | int]


def examples(*commands: str) -> str:
    """The closing part of a subcommand's help."""
    # The indent stands behind a mark: typer takes away the leading spaces that all lines have in common.
    return "\n".join(
        ["[bold]Examples[/bold]", *(f"[not bold]  {command}[/not bold]" for command in commands)]
    )


def print_json(value: Any) -> None:
    """One JSON document, indented, for a script or a person."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Sequence[Row], *, title: str | None = None) -> None:
    """A table: drawn with rules on a terminal, with columns aligned by spaces otherwise."""
    if sys.stdout.isatty():
        _print_rich(columns, rows, title)
    else:
        _print_plain(columns, rows, title)


def partitions_text(partitions: Iterable[TopicPartition]) -> str:
    """`orders:0,1;payments:2`, as Apache Kafka's tool spells an assignment; `-` for none."""
    texts = [f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic(partitions).items()]
    return ";".join(texts) or "-"


def _print_rich(columns: Sequence[str], rows: Sequence[Row], title: str | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if title:  # rich would fold a table's own title at the table's width
        console.print(Text(title, style="bold"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console.print(table)


def _print_plain(columns: Sequence[str], rows: Sequence[Row], title: str | None) -> None:
    if title:
        print(title)
    lines = [[str(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
