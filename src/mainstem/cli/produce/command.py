"""`mainstem produce`: sends lines, JSON messages or a file to a topic.

Keys go to the partition that the Java client would choose (murmur2), so both can feed one topic.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.errors import CommandError
from mainstem.cli.output.message_json import ANY_PARTITION
from mainstem.cli.output.rendering import examples
from mainstem.cli.produce.input import InputRules, read_messages
from mainstem.cli.produce.progress import progress
from mainstem.cli.produce.sender import DELIVERY_TIMEOUT_S, Sender
from mainstem.cli.streams import reason, say
from mainstem.cli.typed.numbers import INT32_MAX
from mainstem.cli.typed.pairs import parse_pairs, unescape

EXAMPLES = examples(
    "echo 'hello, world' | mainstem produce greetings",
    "mainstem produce orders --file orders.csv --key-separator ,",
    "mainstem produce events --format json --compression zstd < events.jsonl",
    "mainstem consume old -B -e --format json | mainstem produce new --format json",
)


class InputFormat(StrEnum):
    """What one message looks like in the input."""

    text = "text"
    json = "json"
    raw = "raw"


class Acks(StrEnum):
    """Whose acknowledgement counts."""

    all = "all"
    one = "1"
    none = "0"


class Compression(StrEnum):
    """The codecs of Kafka's record batches."""

    none = "none"
    gzip = "gzip"
    snappy = "snappy"
    lz4 = "lz4"
    zstd = "zstd"


Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Where to send the messages.")]
File = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read this file, not standard input.")
]
Format = Annotated[
    InputFormat,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="text: a message per line; json: an object per line; raw: all is one message.",
    ),
]
Key = Annotated[str | None, typer.Option("--key", "-k", metavar="KEY", help="The key of every message.")]
KeySeparator = Annotated[
    str | None,
    typer.Option(
        "--key-separator",
        "-K",
        metavar="SEP",
        help=r"Split each line into key and value here (\t for a tab).",
    ),
]
Header = Annotated[
    list[str],
    typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header on every message. May be repeated."),
]
Partition = Annotated[
    int | None,
    typer.Option("--partition", "-p", metavar="N", min=0, max=INT32_MAX, help="Send to this one only."),
]
AcksOption = Annotated[
    Acks,
    typer.Option(
        "--acks",
        "-a",
        metavar="ACKS",
        help="Whose word to wait for: all in-sync copies, 1 (the leader), 0 (none).",
    ),
]
CompressionOption = Annotated[
    Compression,
    typer.Option("--compression", "-z", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd."),
]
NullMarker = Annotated[
    str | None,
    typer.Option("--null-marker", metavar="TEXT", help="A key or value that reads like this is null."),
]
Linger = Annotated[
    float,
    typer.Option("--linger", metavar="MS", min=0, max=900_000, help="How long a batch may wait to fill."),
]
Idempotent = Annotated[
    bool, typer.Option("--idempotent", metavar="", help="No duplicates, in order, whatever is retried.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="No progress and no summary.")]


@takes_target
def produce(
    target: Target,
    topic: Topic,
    file: File = None,
    input_format: Format = InputFormat.text,
    key: Key = None,
    key_separator: KeySeparator = None,
    header: Header = [],  # noqa: B006 - typer reads the default, nothing changes it
    partition: Partition = None,
    acks: AcksOption = Acks.all,
    compression: CompressionOption = Compression.none,
    null_marker: NullMarker = None,
    linger: Linger = 5.0,
    idempotent: Idempotent = False,
    quiet: Quiet = False,
) -> None:
    """Send messages to a topic, from standard input or a file."""
    rules = InputRules(
        input_format.value,
        os.fsencode(key) if key is not None else None,
        unescape(key_separator).encode() if key_separator else None,
        null_marker.encode() if null_marker is not None else None,
        [(name, os.fsencode(value)) for name, value in parse_pairs(header, "--header")],
        ANY_PARTITION if partition is None else partition,
    )
    settings = {
        "acks": acks.value,
        "compression.type": compression.value,
        "linger.ms": linger,
        "partitioner": "murmur2_random",
        "enable.idempotence": idempotent,
        "queue.buffering.max.messages": 1_000_000,
        "delivery.report.only.error": True,
        "message.timeout.ms": DELIVERY_TIMEOUT_S * 1000,
        "message.max.bytes": 1_000_000_000,  # the broker's own limit is the one that counts
    }
    with _open_input(file) as (source, size):
        sender = Sender(target, topic, partition, settings)
        sender.check_topic()
        if source.isatty():
            say("one message per line; Ctrl-D ends")
        shown = not quiet and sys.stderr.isatty() and not source.isatty()
        sender.send_all(progress(read_messages(source, rules), size, shown=shown))
    if not quiet:
        say(sender.summary())


@contextmanager
def _open_input(file: Path | None) -> Iterator[tuple[BinaryIO, int | None]]:
    """The input and its size in bytes, where that is known beforehand."""
    try:
        if file is None:
            yield sys.stdin.buffer, None
            return
        with file.open("rb") as source:
            yield source, file.stat().st_size
    except OSError as error:
        name = "standard input" if file is None else str(file)
        hint = None if file is None else "check the path, or leave --file out to read standard input"
        raise CommandError(f"cannot read {name}: {reason(error)}", hint) from None
