"""`mainstem demo`: a broker, a stream of orders and payments, and a pipeline on Spark, in about a minute.

It starts everything, shows it at work, compares what came out with what went in, and ends everything again,
also when it is interrupted.
"""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from mainstem.cli.command_name import typeable
from mainstem.cli.demo.check import DEAD_LETTERS_TOPIC, PAID_TOPIC, TABLE, Outcome, check
from mainstem.cli.demo.display import Counts, lag_text, make_display
from mainstem.cli.demo.pipeline import FILE, SPARK_LOG, DemoPipeline
from mainstem.cli.demo.requirements import check_requirements
from mainstem.cli.demo.sender import DemoSender
from mainstem.cli.demo.stream import ORDERS, PAYMENTS, Stream
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples, print_table
from mainstem.testing import Broker, BrokerError

EXAMPLES = examples(
    "mainstem demo  [dim]# about a minute; the first time, Spark is installed before[/dim]",
    "mainstem demo --seconds 120 --rate 2000",
    "mainstem demo --port 9092  [dim]# to look at its topics from another terminal meanwhile[/dim]",
    "mainstem demo --keep ./demo  [dim]# the pipeline, the table and the topics, in a place of yours[/dim]",
)
PARTITIONS = 2
TICK_S = 0.2
# How often the outputs are looked into when everything is read.
CHECK_EVERY_S = 2.0
# When nothing has moved for so long after the last record, nothing will.
STANDSTILL_S = 600.0
BROKER_FOLDER = "broker"
WAITING = "all is sent; waiting for the last to come out"


def demo(
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="N", min=1, max=3600, help="How long orders come in.")
    ] = 25.0,
    rate: Annotated[
        int, typer.Option("--rate", metavar="N", min=1, max=10_000, help="Orders in a second.")
    ] = 500,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="DIR",
            help="Work in this new folder; a temporary one otherwise.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", min=0, max=65535, help="The broker's port; 0: a free one."),
    ] = 0,
) -> None:
    """See a queue and a Spark pipeline at work, in about a minute, on this machine.

    It starts a broker and sends it orders and payments. A pipeline, declared in a YAML file, joins the two
    streams: an order waits ten seconds for its payment. Paid orders go to a topic, all orders to a table of
    Parquet files, and records that cannot be read to a topic of dead letters, each exactly once. In the end
    everything that came out is compared with what went in, and nothing is left running. The exit code is 0 if
    all of it is right.
    """
    check_requirements()
    with _work_folder(keep) as folder, _terminable():
        stream = Stream(seconds, rate, datetime.datetime.now(datetime.UTC))
        outcome, elapsed_s = _Demo(folder, port).run(stream)
        _show(outcome, stream, elapsed_s)
        _show_next(folder)
    if not outcome.is_right:
        raise CommandError(
            "what came out is not what went in (see above)", f"everything is still in {folder}, for a report"
        )


@contextmanager
def _work_folder(keep: Path | None) -> Iterator[Path]:
    """The folder of this run. An interrupted run leaves none behind, unless it was asked to keep it."""
    if keep is None:
        folder = Path(tempfile.mkdtemp(prefix="mainstem-demo-"))
    else:
        folder = keep.absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_empty = not any(folder.iterdir())
        except OSError as error:
            raise CommandError(f"{keep} cannot be used: {(error.strerror or str(error)).lower()}") from None
        if not is_empty:
            raise CommandError(f"{keep} is not empty", "name a new folder with --keep")
    try:
        yield folder
    except (KeyboardInterrupt, SystemExit):
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does: everything that it started first."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ending things takes a moment, in which another Ctrl-C must not leave them half ended."""
    kept = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


class _Demo:
    """One run: the broker, the sender, the pipeline and the display, and their end."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port

    def run(self, stream: Stream) -> tuple[Outcome, float]:
        started = time.monotonic()
        started_parts = ExitStack()
        try:
            outcome = self._run(stream, started_parts)
        finally:
            with _undisturbed():
                started_parts.close()
        return outcome, time.monotonic() - started

    def _run(self, stream: Stream, parts: ExitStack) -> Outcome:
        try:
            data_dir = self._folder / BROKER_FOLDER
            broker = parts.enter_context(Broker(data_dir=data_dir, port=self._port))
        except BrokerError as error:
            raise _not_started(error) from None
        bootstrap = broker.bootstrap_servers
        print(f"a broker runs on {bootstrap}; Spark's messages go to {self._folder / SPARK_LOG}", flush=True)
        _create_topics(bootstrap)
        pipeline = DemoPipeline(self._folder, bootstrap)
        parts.push(pipeline)
        pipeline.start()
        sender = DemoSender(stream, bootstrap)
        parts.callback(sender.stop)
        progress = _Progress(sender, pipeline)
        with make_display(sys.stdout) as display:
            while not progress.is_running():
                display.show(progress.counts())
                time.sleep(TICK_S)
            sender.start()
            while not self._is_complete(progress, stream, bootstrap):
                display.show(progress.counts())
                time.sleep(TICK_S)
            display.show(progress.counts("ending the pipeline"))
            pipeline.stop()
            display.show(progress.counts("comparing what came out with what went in"))
            return check(stream.expected, bootstrap, self._folder)

    def _is_complete(self, progress: _Progress, stream: Stream, bootstrap: str) -> bool:
        """Whether all is out, or nothing moves any more: then the comparison says what is missing."""
        if progress.may_be_complete() and check(stream.expected, bootstrap, self._folder).is_right:
            return True
        return progress.stands_still()


def _not_started(error: BrokerError) -> CommandError:
    """What the broker said itself, in the same two lines."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line.removeprefix("mainstem: ") for line in lines if line.startswith("mainstem: ")]
    hints = [line.removeprefix("-> ") for line in lines if line.startswith("-> ")]
    reason = said[-1] if said else lines[-1]
    return CommandError(f"the broker did not start: {reason}", hints[-1] if hints else None)


def _create_topics(bootstrap: str) -> None:
    from mainstem.cli.clusters.target import Target
    from mainstem.wire import KafkaRefusal, NewTopic

    with Target({"bootstrap.servers": bootstrap}).connect() as cluster:
        for answer in cluster.create_topics(
            NewTopic(name, PARTITIONS) for name in (ORDERS, PAYMENTS)
        ).values():
            if isinstance(answer, KafkaRefusal):
                raise answer


class _Progress:
    """How far everything is."""

    def __init__(self, sender: DemoSender, pipeline: DemoPipeline) -> None:
        self._sender = sender
        self._pipeline = pipeline
        self._last: Counts | None = None
        self._moved_at = self._checked_at = time.monotonic()

    def is_running(self) -> bool:
        """Whether the pipeline has started, so that the orders are seen to go through it."""
        self._pipeline.check_alive()
        state = self._pipeline.state()
        return state is not None and state.phase == "running"

    def may_be_complete(self) -> bool:
        """Whether all was sent and read, which is worth a look into the outputs now and then."""
        self._pipeline.check_alive()
        if self._sender.problem is not None:
            raise CommandError(f"a record was not delivered: {self._sender.problem}")
        state = self._pipeline.state()
        if not self._sender.finished or state is None or state.snapshot is None:
            return False
        is_behind = any(lag.records for lag in state.snapshot.lags)
        if is_behind or state.phase != "running" or time.monotonic() < self._checked_at + CHECK_EVERY_S:
            return False
        self._checked_at = time.monotonic()
        return True

    def stands_still(self) -> bool:
        counts = self.counts()
        if counts != self._last or counts.phase != WAITING:
            self._last, self._moved_at = counts, time.monotonic()
        return time.monotonic() - self._moved_at > STANDSTILL_S

    def counts(self, phase: str | None = None) -> Counts:
        sent = self._sender.sent
        state = self._pipeline.state()
        if state is None or state.snapshot is None:
            starting = "starting Spark" if state is None else state.phase
            return Counts(phase or starting, sent[ORDERS], sent[PAYMENTS])
        snapshot = state.snapshot
        sinks = {query.name: query for query in snapshot.sinks}
        lags = {lag.topic: lag_text(lag) for lag in snapshot.lags}
        is_waiting = self._sender.finished and state.phase == "running"
        return Counts(
            phase or (WAITING if is_waiting else state.phase),
            sent[ORDERS],
            sent[PAYMENTS],
            lags.get(ORDERS, ""),
            lags.get(PAYMENTS, ""),
            sinks["paid_orders"].rows_out if "paid_orders" in sinks else 0,
            sinks["all_orders"].rows_out if "all_orders" in sinks else 0,
            snapshot.dead_letters,
            max((query.batch_ms for query in snapshot.sinks), default=0) / 1000,
        )


def _show(outcome: Outcome, stream: Stream, elapsed_s: float) -> None:
    """The summary."""
    expected = stream.expected
    bad_orders = sum(topic == ORDERS for topic in expected.bad.values())
    rows: list[tuple[str | int, ...]] = [
        ("in", f"topic {ORDERS}", f"orders, {bad_orders:,} of them bad", f"{expected.orders:,}", "", ""),
        (
            "in",
            f"topic {PAYMENTS}",
            f"payments, {len(expected.bad) - bad_orders:,} of them bad, "
            f"{len(expected.paid_too_late):,} too late",
            f"{expected.payments:,}",
            "",
            "",
        ),
    ]
    for output in outcome.outputs:
        told = "each once" if output.is_right else f"{output.missing:,} missing, {output.extra:,} too many"
        rows.append(("out", output.place, output.what, f"{output.expected:,}", f"{output.found:,}", told))
    print_table(("", "where", "what", "expected", "found", "check"), rows)
    if outcome.reasons:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(outcome.reasons.items()))
        print(f"\nwhere bad records failed: {reasons}")
    verdict = (
        "everything came out exactly once" if outcome.is_right else "NOT everything came out as it should"
    )
    print(f"\n{verdict}, after {elapsed_s:.0f} s; nothing is running any more")


def _show_next(folder: Path) -> None:
    """What to do now. The commands can be typed as they stand."""
    where = os.path.relpath(folder) if folder.is_relative_to(Path.cwd()) else str(folder)
    print(f"\nit is all in {where}; look at it, copy it, and remove it when you are done:")
    steps = [
        (f"cat {where}/{FILE}", "the pipeline; start your own from it"),
        (f"ls {where}/{TABLE}", "the table, for anything that reads Parquet"),
        (f"mainstem up --data {where}/{BROKER_FOLDER}", "the broker again; then, in another terminal:"),
        (f"mainstem consume {PAID_TOPIC} -B -n 3", "the paid orders"),
        (f"mainstem consume {DEAD_LETTERS_TOPIC} -B -n 3 --format json", "dead letters, with the reason"),
        ("mainstem groups lag shop", "how far the pipeline has read"),
        (f"mainstem pipeline run {where}/{FILE}", "the pipeline again: it goes on where it was"),
    ]
    width = max(len(typeable(command)) for command, _ in steps)
    for command, meaning in steps:
        print(f"  {typeable(command):<{width}}  # {meaning}")
