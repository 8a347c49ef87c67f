"""`mainstem dump-log`: prints what is in the files of a data directory, whoever wrote them.

It only reads, so it may look at the files of a running broker; what it calls damage there may be a write in
progress.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli.dump_log import small_files as dump_small
from mainstem.cli.dump_log import text as dump_text
from mainstem.cli.dump_log.batches import log_entries
from mainstem.cli.dump_log.entry import Entry
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples

EXAMPLES = examples(
    "mainstem dump-log data/orders-0/00000000000000000000.log",
    "mainstem dump-log --batches data/orders-0",
    "mainstem dump-log --json data/orders-0/*.log",
)

LOG_SUFFIXES = (".log", ".checkpoint")

Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders of a partition.")]
Batches = Annotated[
    bool, typer.Option("--batches", metavar="", help="Print the batches only, not the records in them.")
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON object per line.")]


def dump_log(paths: Paths, batches: Batches = False, as_json: Json = False) -> None:
    """Print batches and records, indexes, snapshots and checkpoints of a data directory."""
    damaged = 0
    hint = "docs/storage.md says what a broker does with damaged files"
    for path in _files(paths):
        if not as_json:
            print(path)
        for entry in _entries(path, with_records=not batches):
            if entry["type"] == "damage":
                damaged += 1
                if path.suffix in LOG_SUFFIXES:
                    hint = "a broker cuts off a damaged end of the newest segment by itself when it starts"
            print(_json_line(path, entry) if as_json else dump_text.line(entry))
    if damaged:
        raise CommandError(f"{damaged} damaged {'place' if damaged == 1 else 'places'} found", hint)


def _json_line(path: Path, entry: Entry) -> str:
    return json.dumps({"file": str(path)} | entry, ensure_ascii=False)


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        try:
            yield from _files_of(path)
        except OSError as error:
            raise CommandError(f"cannot read {path}: {error.strerror}", "check who may read it") from None


def _files_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.is_file() and _is_known(file)]
        if not files:
            raise CommandError(
                f"{path} holds no log files", "name the folder of a partition, such as orders-0"
            )
        yield from files
    elif path.is_file():
        if not _is_known(path):
            raise CommandError(f"{path} is not a file of a log", f"known are {', '.join(_known_names())}")
        yield path
    else:
        raise CommandError(
            f"there is no file {path}", "name a file or a partition's folder of a data directory"
        )


def _entries(path: Path, *, with_records: bool) -> Iterator[Entry]:
    try:
        if path.suffix in LOG_SUFFIXES:
            yield from log_entries(path, with_records=with_records)
        else:
            yield from _reader(path)(path)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}", "check who may read it") from None
    except ValueError as error:  # what the storage layer raises for a file that does not have its format
        yield {"type": "damage", "position": 0, "message": str(error)}


def _reader(path: Path) -> dump_small.Reader:
    return dump_small.BY_NAME.get(path.name) or dump_small.BY_SUFFIX[path.suffix]


def _is_known(path: Path) -> bool:
    return (
        path.suffix in LOG_SUFFIXES or path.name in dump_small.BY_NAME or path.suffix in dump_small.BY_SUFFIX
    )


def _known_names() -> list[str]:
    return [*LOG_SUFFIXES, *dump_small.BY_SUFFIX, *dump_small.BY_NAME]
