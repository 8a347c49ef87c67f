"""`mainstem pipeline replay-dead-letters`: what it takes, and what it sends again."""

from __future__ import annotations

from typing import Annotated

import typer

from mainstem.cli.clusters.target import Target
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples
from mainstem.cli.pipeline.files import DEFAULT_FILE, File, Overrides, usable

EXAMPLES = examples(
    "mainstem pipeline replay-dead-letters orders.yaml --dry-run  [dim]# what would be sent[/dim]",
    "mainstem pipeline replay-dead-letters orders.yaml  [dim]# to the topics that they came from[/dim]",
    "mainstem pipeline replay-dead-letters orders.yaml --to orders-repaired --limit 100",
)


def replay_dead_letters(
    file: File = DEFAULT_FILE,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TOPIC", help="Another topic than where they came from.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="At most so many dead letters.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Only show what would be sent.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", metavar="", help="All dead letters, also those sent before.")
    ] = False,
    bootstrap: Overrides = None,
) -> None:
    """Send the records of dead letters to their topics again: exactly those that were not yet."""
    document = usable(file)
    pipeline = document.pipeline
    assert pipeline is not None
    from mainstem.cli.pipeline.replayer import Replayer
    from mainstem.spark.pipeline.dead_letters.headers import bytes_max
    from mainstem.spark.pipeline.parts import as_text
    from mainstem.spark.pipeline.places import Places

    if pipeline.dead_letters is None:
        hint = "add dead_letters: TOPIC to it"
        raise CommandError(f"{pipeline.name} has no topic for dead letters", hint)
    places = Places(pipeline, document.folder, bootstrap=bootstrap)
    servers = places.bootstrap(pipeline.dead_letters.bootstrap)
    replayer = Replayer(
        Target(as_text(pipeline.kafka) | {"bootstrap.servers": servers}),
        pipeline.dead_letters.topic,
        pipeline.name,
        f"{places.group}.dead-letters",
        bytes_max(pipeline.kafka),
    )
    replayer.run(to=to, limit=limit, dry_run=dry_run, again=again)
