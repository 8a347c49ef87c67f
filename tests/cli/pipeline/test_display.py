"""The metrics of a running pipeline, as lines and as a table on a terminal."""

import io

from mainstem.cli.pipeline.display import Display, TerminalDisplay, make_display
from mainstem.spark.pipeline.metrics.progress import QueryMetrics, Snapshot, TopicLag


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def _snapshot() -> Snapshot:
    out = QueryMetrics(
        "out", batches=2, rows_in=1200, rows_out=900, input_rate=100, processed_rate=250, batch_ms=1500
    )
    dead = QueryMetrics("dead-letters.orders", rows_out=7)
    return Snapshot("shop", [out, dead], [TopicLag("orders", 12345, 61.4), TopicLag("new", 3)])


def test_lines_for_a_pipe() -> None:
    stream = io.StringIO()
    display = make_display("shop", stream)
    assert type(display) is Display
    with display:
        display.phase("running")
        display.metrics(_snapshot())
        display.metrics(_snapshot())  # the same again says nothing
    display.summary(_snapshot())
    assert stream.getvalue().splitlines() == [
        "shop: running",
        "shop: in 100/s, done 250/s, batch 1.5 s, lag orders 12,345 (61 s), new 3 (?), dead letters 7",
        "out: 1,200 in, 900 out, 2 batches",
        "dead letters: 7; ended after 0 s",
    ]


def test_a_table_on_a_terminal() -> None:
    stream = Terminal()
    display = make_display("shop", stream)
    assert isinstance(display, TerminalDisplay)
    with display:
        display.phase("running")
        display.metrics(_snapshot())
        display.restarted("out", "a broker was away")
    shown = stream.getvalue()
    for text in ("12,345", "61 s", "250/s", "1.5 s", "out failed (a broker was away)", "dead letters"):
        assert text in shown
