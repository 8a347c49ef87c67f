"""`mainstem storage`: formats the directories of a node, says what they are, and makes ids.

It takes what `kafka-storage` takes and leaves what `kafka-storage` leaves: either formats for the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli.output.rendering import examples
from mainstem.cli.storage import formatting, info
from mainstem.protocol.uuids import random_uuid, uuid_to_text

app = typer.Typer(
    help="Format the directories of a node, and look what they are.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Config = Annotated[
    Path, typer.Option("--config", "-c", metavar="FILE", help="The node's server.properties file.")
]
ClusterId = Annotated[
    str, typer.Option("--cluster-id", "-t", metavar="ID", help="The cluster's id, the same for all nodes.")
]


@app.command(
    "format",
    epilog=examples(
        "mainstem storage format -t ID -c server.properties --standalone",
        "mainstem storage format -t ID -c server.properties --no-initial-controllers",
        "mainstem storage format -t ID -c server.properties --initial-controllers "
        "1@host1:9093:DIRECTORY_ID,2@host2:9093:DIRECTORY_ID,3@host3:9093:DIRECTORY_ID",
    ),
)
def format_storage(
    config: Config,
    cluster_id: ClusterId,
    standalone: Annotated[
        bool,
        typer.Option("--standalone", "-s", metavar="", help="This controller is the first and only voter."),
    ] = False,
    initial_controllers: Annotated[
        str | None,
        typer.Option(
            "--initial-controllers", "-I", metavar="VOTERS",
            help="The first voters: id@host:port:directory-id, with commas between, the same on all nodes.",
        ),
    ] = None,
    no_initial_controllers: Annotated[
        bool,
        typer.Option(
            "--no-initial-controllers", "-N", metavar="",
            help="The node finds the voters: they are there already, or it is none of them.",
        ),
    ] = False,
    ignore_formatted: Annotated[
        bool,
        typer.Option(
            "--ignore-formatted", "-g", metavar="", help="Leave alone what is formatted; no error for it."
        ),
    ] = False,
    release_version: Annotated[
        str | None,
        typer.Option(
            "--release-version", "-r", metavar="VERSION",
            help="Begin with the features of this release of Kafka, such as 4.2 or 4.2-IV0.",
        ),
    ] = None,
    feature: Annotated[
        list[str],
        typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="Begin with this level. May be repeated."),
    ] = [],  # noqa: B006 - typer reads the default, nothing changes it
) -> None:  # fmt: skip
    """Format the directories of a node for a cluster."""
    wanted = formatting.Wanted(
        cluster_id,
        standalone,
        initial_controllers,
        no_initial_controllers,
        ignore_formatted,
        release_version,
        tuple(feature),
    )
    formatting.format_node(config, wanted)


@app.command(
    "info",
    epilog=examples("mainstem storage info -c server.properties"),
)
def storage_info(config: Config) -> None:
    """Say what the directories of a node are, and what is wrong with them."""
    info.show(config)


@app.command(
    "random-uuid",
    epilog=examples("mainstem storage random-uuid"),
)
def print_random_uuid() -> None:
    """Print an id for a new cluster or directory."""
    print(uuid_to_text(random_uuid()))
