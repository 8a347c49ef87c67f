"""`mainstem pipeline run`: starts a pipeline on Spark and shows how it gets on, until it ends or is
stopped."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from mainstem.cli.clusters.target import Target
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples
from mainstem.cli.pipeline.files import DEFAULT_FILE, File, Overrides, mistakes, show, usable
from mainstem.cli.streams import say
from mainstem.cli.typed.pairs import parse_pairs

if TYPE_CHECKING:
    from mainstem.spark.pipeline.file.reader import Document
    from mainstem.spark.pipeline.model import Pipeline
    from mainstem.spark.pipeline.places import Places

EXAMPLES = examples(
    "mainstem pipeline run  [dim]# pipeline.yaml, on this machine, until Ctrl-C[/dim]",
    "mainstem pipeline run orders.yaml --once  [dim]# what is there now, then end[/dim]",
    "mainstem pipeline run orders.yaml --metrics-port 9095",
    "mainstem pipeline run orders.yaml --master spark://host:7077 --package",
    "mainstem pipeline run orders.yaml --master k8s://https://host:6443 --conf spark.executor.instances=3",
)

Master = Annotated[
    str, typer.Option("--master", metavar="URL", help="Where Spark runs: local[N], spark://, k8s://, yarn.")
]
Once = Annotated[bool, typer.Option("--once", metavar="", help="Process what is there now, then end.")]
Confs = Annotated[
    list[str], typer.Option("--conf", "-c", metavar="KEY=VALUE", help="A setting of Spark. May be repeated.")
]
Package = Annotated[
    bool, typer.Option("--package", metavar="", help="Send our Python packages to workers that lack them.")
]
MetricsPort = Annotated[
    int | None,
    typer.Option("--metrics-port", metavar="PORT", min=0, max=65535, help="Serve Prometheus metrics there."),
]
MetricsHost = Annotated[
    str, typer.Option("--metrics-host", metavar="HOST", help="The address to serve them on.")
]
Checkpoint = Annotated[
    str | None,
    typer.Option("--checkpoint", metavar="FOLDER", help="Keep its progress there, not where the file says."),
]
Log = Annotated[str | None, typer.Option("--log", metavar="FILE", help="Where Spark's own messages go.")]
Grace = Annotated[
    float, typer.Option("--grace", metavar="SECONDS", help="How long batches may take to end when stopped.")
]


def run(
    file: File = DEFAULT_FILE,
    master: Master = "local[*]",
    once: Once = False,
    conf: Confs = [],  # noqa: B006 - typer reads the default, nothing changes it
    package: Package = False,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
    checkpoint: Checkpoint = None,
    log: Log = None,
    grace_s: Grace = 30.0,
    bootstrap: Overrides = None,
) -> None:
    """Run a pipeline until Ctrl-C, SIGTERM or `mainstem pipeline stop`; a restart goes on where it was."""
    document = usable(file)
    assert document.pipeline is not None
    from mainstem.spark.pipeline.checking.spark_parser import NoParser, java
    from mainstem.spark.pipeline.places import Places, state_home
    from mainstem.spark.pipeline.running import session
    from mainstem.spark.pipeline.running.registration import AlreadyRunning, Registration, State
    from mainstem.spark.pipeline.running.runner import RunOptions

    try:
        java()
    except NoParser as error:
        hint = "install a Java runtime of version 17 or later, or set JAVA_HOME to one"
        raise CommandError(f"Spark needs Java: {error}", hint) from None
    places = Places(document.pipeline, document.folder, bootstrap=bootstrap, checkpoint=_absolute(checkpoint))
    log_file = Path(log) if log else state_home() / "logs" / f"{document.pipeline.name}.log"
    configuration = dict(parse_pairs(conf, "--conf"))
    if package:
        configuration = _packaged(places, configuration)
    elif not session.is_local(master):
        say("the workers need Python packages of ours: --package sends them, if they are not installed there")
    state = State(
        name=document.pipeline.name,
        pid=os.getpid(),
        file=str(Path(file).absolute()),
        master=master,
        checkpoint=places.checkpoint,
        group=places.group,
        log=str(log_file.absolute()),
    )
    options = RunOptions(master, configuration, once, log_file, grace_s)
    try:
        with Registration(state) as registration:
            _Run(document, places, options, registration).go(metrics_host, metrics_port)
    except AlreadyRunning as error:
        hint = f"`mainstem pipeline stop {document.pipeline.name}` ends it"
        raise CommandError(str(error), hint) from None


def _absolute(folder: str | None) -> str | None:
    """What is typed is relative to where it is typed, not to the file."""
    return folder if folder is None or "://" in folder else str(Path(folder).absolute())


def _packaged(places: Places, configuration: dict[str, str]) -> dict[str, str]:
    from mainstem.spark.pipeline.running.package import archive_settings, build_archive

    folder = Path(places.checkpoint) if places.has_local_checkpoint else Path.cwd()
    say("packing the Python packages for the workers ...")
    archive = build_archive(folder / "package")
    say(f"  {archive} ({archive.stat().st_size / 1e6:.0f} MB)")
    return archive_settings(archive) | configuration


def bootstraps(pipeline: Pipeline, places: Places) -> list[str]:
    """Every cluster that a pipeline talks to."""
    parts = [*pipeline.sources.values(), *pipeline.sinks.values(), pipeline.dead_letters]
    own = [getattr(part, "bootstrap", None) for part in parts if hasattr(part, "bootstrap")]
    return list(dict.fromkeys(places.bootstrap(each) for each in own))


class _Run:
    """One run with its signals, its display, its entry among the running ones and its metrics."""

    def __init__(self, document: Document, places: Places, options: object, registration: object) -> None:
        from mainstem.cli.pipeline.display import make_display
        from mainstem.spark.pipeline.parts import as_text
        from mainstem.spark.pipeline.running.registration import Registration
        from mainstem.spark.pipeline.running.runner import Hooks, Runner, RunOptions

        assert document.pipeline is not None
        assert isinstance(options, RunOptions)
        assert isinstance(registration, Registration)
        self._document = document
        self._options = options
        settings = as_text(document.pipeline.kafka)
        self._targets = [
            Target(settings | {"bootstrap.servers": servers})
            for servers in bootstraps(document.pipeline, places)
        ]
        self._registration = registration
        self._display = make_display(document.pipeline.name, sys.stdout)
        hooks = Hooks(
            phase=self._phase,
            metrics=self._metrics,
            rows=self._display.rows,
            created=self._display.created,
            restarted=self._display.restarted,
        )
        self._runner = Runner(document, places, options, hooks)
        self._written_at = 0.0
        self._is_asked = False

    def go(self, host: str, port: int | None) -> None:
        from mainstem.spark.pipeline.metrics.prometheus import MetricsServer
        from mainstem.spark.pipeline.problems import PipelineError
        from mainstem.spark.pipeline.running.failures import RunFailed
        from mainstem.wire import WireError

        state = self._registration.state
        server = None
        if port is not None:
            try:
                server = MetricsServer(host, port, lambda: self._runner.snapshot)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise CommandError(f"metrics cannot be served on {host}:{port}: {reason}") from None
            state.metrics_port = server.port
            say(f"metrics: http://{host}:{server.port}/metrics")
        signal.signal(signal.SIGTERM, self._asked)
        signal.signal(signal.SIGINT, self._asked)
        end = "failed"
        try:
            for target in self._targets:
                with target.connect():
                    pass  # at once; the pipeline's own client would go on trying for a minute
            with self._display:
                self._runner.run()
            end = "ended"
        except CommandError as error:
            raise self._failed(error) from None
        except PipelineError as error:
            show(self._document, error.problems)
            raise self._failed(mistakes(self._document, error.problems)) from None
        except RunFailed as error:
            hint = error.hint or "nothing is lost: a restart goes on where it was"
            raise self._failed(CommandError(str(error), f"{hint}. Spark's log: {state.log}")) from None
        except WireError as error:
            raise self._failed(
                CommandError(str(error), "start a broker with `mainstem up`, or give -b")
            ) from None
        finally:
            state.phase = end
            if server is not None:
                server.close()
        self._display.summary(self._runner.snapshot)

    def _failed(self, error: CommandError) -> CommandError:
        self._registration.state.error = error.message
        return error

    def _asked(self, number: int, frame: FrameType | None) -> None:
        if self._is_asked and number == signal.SIGINT:
            raise KeyboardInterrupt  # who presses Ctrl-C again does not want to wait for the batch
        self._is_asked = True
        self._runner.stop()
        self._display.stopping()

    def _phase(self, phase: str) -> None:
        self._registration.state.phase = phase
        self._registration.write()
        self._display.phase(phase)

    def _metrics(self, snapshot: object) -> None:
        from mainstem.spark.pipeline.metrics.progress import Snapshot

        assert isinstance(snapshot, Snapshot)
        self._registration.state.snapshot = snapshot
        self._display.metrics(snapshot)
        if time.monotonic() - self._written_at > 1:
            self._written_at = time.monotonic()
            self._registration.write()
