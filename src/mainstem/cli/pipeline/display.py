"""How a running pipeline looks: a table that renews itself on a terminal, a line now and then otherwise."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from mainstem.spark.pipeline.metrics.progress import QueryMetrics, Snapshot, TopicLag

LINE_EVERY_S = 10.0


def rate(value: float) -> str:
    return f"{value:,.0f}/s"


def behind(lag: TopicLag) -> str:
    return (
        "?"
        if lag.seconds is None
        else f"{lag.seconds:,.0f} s"
        if lag.seconds >= 1
        else "<1 s"
        if lag.records
        else "0 s"
    )


def make_display(name: str, stream: TextIO) -> Display:
    """The display that suits where the output goes."""
    return TerminalDisplay(name, stream) if stream.isatty() else Display(name, stream)


class Display:
    """Plain lines, for a pipe or a log."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self._stream = stream
        self._line_at = 0.0
        self._last = ""

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def phase(self, phase: str) -> None:
        self.say(f"{self._name}: {phase}")

    def created(self, topics: list[str]) -> None:
        self.say(f"created topic{'s' if len(topics) > 1 else ''} {', '.join(topics)}")

    def restarted(self, query: str, reason: str) -> None:
        self.say(f"{query} failed ({reason}) and was started again")

    def stopping(self) -> None:
        """Called from a signal handler: nothing that may wait."""

    def metrics(self, snapshot: Snapshot) -> None:
        line = self._line(snapshot)
        if line != self._last and time.monotonic() - self._line_at >= LINE_EVERY_S:
            self._last, self._line_at = line, time.monotonic()
            self.say(line)

    def _line(self, snapshot: Snapshot) -> str:
        rates = max((query.processed_rate for query in snapshot.sinks), default=0.0)
        coming = max((query.input_rate for query in snapshot.sinks), default=0.0)
        slowest = max((query.batch_ms for query in snapshot.sinks), default=0)
        lags = ", ".join(f"{lag.topic} {lag.records:,} ({behind(lag)})" for lag in snapshot.lags) or "unknown"
        return (
            f"{self._name}: in {rate(coming)}, done {rate(rates)}, batch {slowest / 1000:.1f} s, "
            f"lag {lags}, dead letters {snapshot.dead_letters:,}"
        )

    def rows(self, name: str, frame: Any, count: int) -> None:
        """The first rows of a batch of a console sink."""
        table = frame.limit(count).toArrow()
        if not table.num_rows:
            return
        self.say(f"-- {name}")
        cells = [[str(cell) for cell in row.values()] for row in table.to_pylist()]
        lines = [table.column_names, *cells]
        widths = [max(len(line[index]) for line in lines) for index in range(len(table.column_names))]
        for line in lines:
            self.say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())

    def summary(self, snapshot: Snapshot) -> None:
        """What was done, at the end."""
        seconds = max(0.0, snapshot.updated_at - snapshot.started_at)
        for query in snapshot.sinks:
            self.say(f"{query.name}: {query.rows_in:,} in, {query.rows_out:,} out, {query.batches:,} batches")
        self.say(f"dead letters: {snapshot.dead_letters:,}; ended after {seconds:.0f} s")


class TerminalDisplay(Display):
    """A table on a terminal, renewed in place."""

    def __init__(self, name: str, stream: TextIO) -> None:
        super().__init__(name, stream)
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream)
        self._live = Live(console=self._console, auto_refresh=True, refresh_per_second=4, transient=True)
        self._phase = "starting"
        self._snapshot: Snapshot | None = None

    def __enter__(self) -> Display:
        self._live.start()
        self._draw()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def phase(self, phase: str) -> None:
        self._phase = phase
        self._draw()

    def stopping(self) -> None:
        self._phase = "stopping after this batch"

    def metrics(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._draw()

    def _draw(self) -> None:
        from rich.console import Group
        from rich.spinner import Spinner

        keys = "Ctrl-C again ends it at once" if self._phase.startswith("stopping") else "Ctrl-C stops it"
        parts: list[Any] = [Spinner("dots", f" {self._name}: {self._phase}  ({keys})")]
        if self._snapshot is not None and self._snapshot.queries:
            parts += [self._sinks(self._snapshot), self._topics(self._snapshot)]
        self._live.update(Group(*parts))

    def _sinks(self, snapshot: Snapshot) -> Any:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("sink", "coming in", "done", "batch", "batches", "rows in", "rows out"):
            table.add_column(column, justify="left" if column == "sink" else "right")
        for query in snapshot.queries:
            table.add_row(*self._row(query), style=None if query.is_active else "dim")
        return table

    def _row(self, query: QueryMetrics) -> list[str]:
        return [
            query.name,
            rate(query.input_rate),
            rate(query.processed_rate),
            f"{query.batch_ms / 1000:.1f} s",
            f"{query.batches:,}",
            f"{query.rows_in:,}",
            f"{query.rows_out:,}",
        ]

    def _topics(self, snapshot: Snapshot) -> Any:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("topic", "lag", "behind"):
            table.add_column(column, justify="left" if column == "topic" else "right")
        for lag in snapshot.lags:
            table.add_row(lag.topic, f"{lag.records:,}", behind(lag))
        table.add_row(
            "dead letters", f"{snapshot.dead_letters:,}", "", style="red" if snapshot.dead_letters else "dim"
        )
        return table
