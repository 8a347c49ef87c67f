"""`mainstem pipeline`: write, check, explain, run and stop declared pipelines on Spark, and replay their
dead letters.

Only the command that is asked for loads what it needs; Spark itself is loaded by `run`, `explain` and
`validate` alone.
"""

from __future__ import annotations

import typer

from mainstem.cli import (
    pipeline_explain,
    pipeline_init,
    pipeline_replay,
    pipeline_run,
    pipeline_status,
    pipeline_validate,
)

app = typer.Typer(
    help="Run data pipelines on Spark that a file declares: topics in, out to topics and tables.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

app.command("init", epilog=pipeline_init.EXAMPLES)(pipeline_init.init)
app.command("validate", epilog=pipeline_validate.EXAMPLES)(pipeline_validate.validate)
app.command("explain", epilog=pipeline_explain.EXAMPLES)(pipeline_explain.explain)
app.command("run", epilog=pipeline_run.EXAMPLES)(pipeline_run.run)
app.command("status", epilog=pipeline_status.STATUS_EXAMPLES)(pipeline_status.status)
app.command("stop", epilog=pipeline_status.STOP_EXAMPLES)(pipeline_status.stop)
app.command("replay-dead-letters", epilog=pipeline_replay.EXAMPLES)(pipeline_replay.replay_dead_letters)
