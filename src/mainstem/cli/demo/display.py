"""How `mainstem demo` looks while it runs: a table renewed in place on a terminal, plain lines otherwise."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TextIO

from mainstem.cli.pipeline.display import behind

LINE_EVERY_S = 5.0


@dataclass(frozen=True)
class Counts:
    """Everything that is shown at one moment."""

    phase: str
    orders: int = 0
    payments: int = 0
    orders_lag: str = ""
    payments_lag: str = ""
    paid: int = 0
    rows: int = 0
    dead_letters: int = 0
    batch_s: float = 0.0


def lag_text(lag: Any) -> str:
    return f"{lag.records:,} behind ({behind(lag)})" if lag.records else "up to date"


def make_display(stream: TextIO) -> DemoDisplay:
    """The display that suits where the output goes."""
    return TerminalDisplay(stream) if stream.isatty() else DemoDisplay(stream)


class DemoDisplay:
    """Plain lines, for a pipe or a log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()
        self._line_at = self._started
        self._last = Counts("")

    def __enter__(self) -> DemoDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, counts: Counts) -> None:
        now = time.monotonic()
        is_due = counts != self._last and now - self._line_at >= LINE_EVERY_S
        if counts.phase != self._last.phase or is_due:
            self._last, self._line_at = counts, now
            print(self._line(counts), file=self._stream, flush=True)

    def _line(self, counts: Counts) -> str:
        return (
            f"{self._elapsed()}  {counts.phase}: "
            f"{counts.orders:,} orders and {counts.payments:,} payments in, "
            f"{counts.paid:,} paid orders, {counts.rows:,} rows and {counts.dead_letters:,} dead letters out"
        )

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._started:3.0f} s"


class TerminalDisplay(DemoDisplay):
    """A table on a terminal, renewed in place, and gone when it ends."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        from rich.console import Console
        from rich.live import Live

        self._counts = Counts("starting")
        self._live = Live(
            console=Console(file=stream),
            get_renderable=self._picture,
            auto_refresh=True,
            refresh_per_second=5,
            transient=True,
        )

    def __enter__(self) -> DemoDisplay:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, counts: Counts) -> None:
        self._counts = counts

    def _picture(self) -> Any:
        from rich import box
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
        for justify in ("left", "left", "right", "left"):
            table.add_column(justify=justify)
        for row in self._rows(self._counts):
            table.add_row(*row)
        if not hasattr(self, "_spinner"):
            self._spinner = Spinner("dots")
        self._spinner.update(text=f" {self._elapsed()}  {self._counts.phase}  [dim](Ctrl-C ends it)[/dim]")
        return Group(self._spinner, table)

    @staticmethod
    def _rows(counts: Counts) -> Iterator[tuple[str, ...]]:
        yield "in", "topic orders", f"{counts.orders:,}", counts.orders_lag
        yield "", "topic payments", f"{counts.payments:,}", counts.payments_lag
        batch = f"batches of {counts.batch_s:.1f} s" if counts.batch_s else ""
        yield "out", "topic paid-orders", f"{counts.paid:,}", batch
        yield "", "table, Parquet", f"{counts.rows:,}", ""
        yield "", "topic shop.dead-letters", f"{counts.dead_letters:,}", ""
