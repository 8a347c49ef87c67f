"""`mainstem pipeline status` and `stop`: the pipelines that were started on this machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples, print_json, print_table
from mainstem.cli.pipeline.files import missing_package
from mainstem.cli.streams import say

if TYPE_CHECKING:
    from mainstem.spark.pipeline.running.registration import State

STATUS_EXAMPLES = examples("mainstem pipeline status", "mainstem pipeline status orders --json")
STOP_EXAMPLES = examples("mainstem pipeline stop orders", "mainstem pipeline stop orders --timeout 120")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The pipeline's name.")]


def status(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One pipeline; all by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON for a script.")] = False,
) -> None:
    """Show the pipelines that run on this machine, and how the others ended."""
    states = _states(name)
    if as_json:
        print_json([_as_json(state, running) for state, running in states])
    elif not states:
        say("no pipeline was started here; `mainstem pipeline run` starts one")
    else:
        rows = [_row(state, running) for state, running in states]
        print_table(("pipeline", "state", "in", "out", "dead", "lag", "behind", "process"), rows)
        for state, running in states:
            if not running and state.error:
                say(f"{state.name}: {state.error}")


def stop(
    name: Name,
    timeout_s: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="How long to wait for its end.")
    ] = 60.0,
) -> None:
    """End a pipeline after the batch that is under way, and wait until it has."""
    from mainstem.spark.pipeline.running import registration

    ((_, is_running),) = _states(name)
    if not is_running:
        say(f"{name} is not running")
    elif registration.stop(name, timeout_s):
        print(f"stopped {name}")
    else:
        raise CommandError(f"{name} has not ended within {timeout_s:g} s", "wait longer with --timeout")


def _states(name: str | None) -> list[tuple[State, bool]]:
    try:
        from mainstem.spark.pipeline.problems import did_you_mean
        from mainstem.spark.pipeline.running.registration import is_running, known_pipelines, read_state
    except ModuleNotFoundError as error:
        raise missing_package(error) from None
    known = known_pipelines()
    if name is not None and name not in known:
        raise CommandError(f"no pipeline {name} was started here", did_you_mean(name, known, "there are"))
    found = ((read_state(each), is_running(each)) for each in ([name] if name is not None else known))
    return [(state, running) for state, running in found if state is not None]


def _phase(state: State, running: bool) -> str:
    """A process that is gone cannot have said so."""
    return state.phase if running or state.phase in ("ended", "failed") else "died"


def _row(state: State, running: bool) -> tuple[str | int, ...]:
    snapshot = state.snapshot
    if snapshot is None:
        return (state.name, _phase(state, running), "", "", "", "", "", state.pid if running else "")
    return (
        state.name,
        _phase(state, running),
        snapshot.records_read,
        sum(query.rows_out for query in snapshot.sinks),
        snapshot.dead_letters,
        sum(lag.records for lag in snapshot.lags),
        f"{max((lag.seconds or 0 for lag in snapshot.lags), default=0):.0f} s",
        state.pid if running else "",
    )


def _as_json(state: State, running: bool) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(state)
    found["phase"] = _phase(state, running)
    found["running"] = running
    if state.snapshot is not None:
        found["snapshot"]["records_read"] = state.snapshot.records_read
        found["snapshot"]["dead_letters"] = state.snapshot.dead_letters
        found["snapshot"]["age_s"] = round(time.time() - state.snapshot.updated_at, 1)
    return found
