"""`mainstem pipeline`: write, check, explain, run and stop declared pipelines on Spark, and replay their
dead letters.

Only the command that is asked for loads what it needs; Spark itself is loaded by `run`, `explain` and
`validate` alone.
"""

from __future__ import annotations

import typer

from mainstem.cli.pipeline import explain, init, replay, run, status, validate

app = typer.Typer(
    help="Run data pipelines on Spark that a file declares: topics in, out to topics and tables.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

app.command("init", epilog=init.EXAMPLES)(init.init)
app.command("validate", epilog=validate.EXAMPLES)(validate.validate)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("status", epilog=status.STATUS_EXAMPLES)(status.status)
app.command("stop", epilog=status.STOP_EXAMPLES)(status.stop)
app.command("replay-dead-letters", epilog=replay.EXAMPLES)(replay.replay_dead_letters)
