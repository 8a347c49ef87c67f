"""`mainstem pipeline init`: writes a pipeline file to start from, with a schema inferred from a topic if
one is given."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mainstem.cli.clusters.existing import existing_topic
from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples
from mainstem.cli.pipeline.files import DEFAULT_FILE, missing_package
from mainstem.cli.streams import say

if TYPE_CHECKING:
    from mainstem.spark.pipeline.schemas.ddl import Schema

EXAMPLES = examples(
    "mainstem pipeline init  [dim]# pipeline.yaml, with comments[/dim]",
    "mainstem pipeline init clicks.yaml --topic clicks  [dim]# with the schema of what is in the topic[/dim]",
)
SAMPLE = 1000
_SCHEMA = "id BIGINT NOT NULL, product STRING, amount DOUBLE, at TIMESTAMP"

TEMPLATE = """\
# A pipeline: topics in, transformed by Spark, out to topics and tables.
#   mainstem pipeline validate {file}     finds every mistake in it
#   mainstem pipeline explain {file}      shows how it hangs together
#   mainstem pipeline run {file} --once   processes what is there now; without --once it goes on
pipeline: {name}
bootstrap: {bootstrap}

# Records that cannot be decoded or break a rule go here, as they were, with headers that say why.
dead_letters: {name}.dead-letters

# Where its progress is kept. A restart goes on from there.
checkpoint: ./checkpoints/{name}

# How often a batch is started; without it, at once when the last one is done.
trigger: 2 seconds

sources:
  {view}:
    topic: {topic}
    from: earliest            # or latest, or a time such as 2026-01-31T12:00:00Z; only for the first run
    # rate: 100000            # at most this many records in a batch
    decode:
      format: json            # or csv, avro, protobuf, raw
      # A column that is NOT NULL must be there, or the record is a dead letter.
      schema: >
        {schema}
    # require:                # rules; a record that breaks one is a dead letter
    #   positive: amount > 0
{watermark}
steps:
  # Each step is a view; later steps and sinks name it. SQL reads views as tables.
  chosen:
    sql: |
      SELECT {columns}
      FROM {view}

  # A function of your own, on a DataFrame, in a file beside this one:
  # enriched: {{python: functions.py:enrich, from: chosen}}

  # Totals by windows of time; a window is written when the watermark has passed it:
  # per_minute:
  #   from: {view}
  #   window: {{column: at, size: 1 minute}}
  #   by: [product]
  #   aggregate: {{orders: count(*), total: sum(amount)}}

sinks:
  # Into a topic, exactly once.
  to_topic: {{from: chosen, topic: {name}-chosen}}
  # Into files; also delta, iceberg, jdbc and console.
  to_files: {{from: chosen, parquet: ./data/{name}}}
"""
_WATERMARK = """\
    # How late a record may come. Windows and joins forget what is older.
    watermark: {{column: {column}, delay: 10 minutes}}
"""


@takes_target
def init(
    target: Target,
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="The file to write.")] = DEFAULT_FILE,
    topic: Annotated[
        str | None,
        typer.Option("--topic", "-t", metavar="TOPIC", help="Read this topic, with the schema of its JSON."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace a file that is there.")] = False,
) -> None:
    """Write a commented pipeline file to start from."""
    path = Path(file)
    if path.exists() and not force:
        raise CommandError(f"{file} is there already", "name another file, or replace it with --force")
    try:
        from mainstem.spark.pipeline.schemas import ddl
    except ModuleNotFoundError as error:
        raise missing_package(error) from None
    schema = ddl.parse(_SCHEMA) if topic is None else _inferred(target, topic)
    times = [column.name for column in schema if column.type.name == "timestamp"]
    name = re.sub(r"[^\w.-]", "-", topic or "orders")
    text = TEMPLATE.format(
        file=file,
        name=name,
        bootstrap=target.bootstrap,
        view=_view_name(topic or "orders"),
        topic=topic or "orders",
        schema=",\n        ".join(column.ddl() for column in schema),
        columns=", ".join(_quoted(column.name) for column in schema),
        watermark=_WATERMARK.format(column=times[0]) if times else "",
    )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {(error.strerror or str(error)).lower()}") from None
    print(f"wrote {file}")
    say(f"next: edit it, then `mainstem pipeline validate {file}`")


def _view_name(topic: str) -> str:
    name = re.sub(r"\W", "_", topic)
    return name if re.match(r"[A-Za-z_]", name) else f"t_{name}"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"


def _inferred(target: Target, topic: str) -> Schema:
    from mainstem.spark.pipeline.brokers.samples import newest_values
    from mainstem.spark.pipeline.schemas.inference import CannotInfer
    from mainstem.spark.pipeline.sources.decode import Decode
    from mainstem.spark.source.client import open_client
    from mainstem.spark.source.options import parse_options
    from mainstem.wire import WireError
    from mainstem.wire.kafka_options import SECURITY_PREFIXES

    given = {
        **{
            f"kafka.{name}": text
            for name, text in target.settings.items()
            if name.startswith(("bootstrap.", *SECURITY_PREFIXES))
        },
        "subscribe": topic,
        "kafka.isolation.level": "read_committed",
    }
    with target.connect() as cluster:
        existing_topic(cluster, topic)
    try:
        with open_client(parse_options(given, "batch")) as client:
            return Decode(format="json").infer_columns(newest_values(client, [topic], SAMPLE))
    except WireError as error:
        raise CommandError(str(error)) from None
    except CannotInfer as error:
        raise CommandError(f"{topic}: {error}", "leave --topic out and write the schema yourself") from None
