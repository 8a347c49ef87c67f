"""What every `mainstem pipeline` command does with a pipeline file: read it, check it, show its mistakes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import print_json
from mainstem.cli.streams import say
from mainstem.nearest import suggestion

if TYPE_CHECKING:
    from mainstem.spark.pipeline.file.reader import Document
    from mainstem.spark.pipeline.problems import Problem

DEFAULT_FILE = "pipeline.yaml"

File = Annotated[
    str,
    typer.Argument(
        metavar="[FILE]", help="The pipeline: a YAML file, or a Python file with a variable `pipeline`."
    ),
]
Overrides = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT",
        help="The cluster, instead of the one in the file.",
    ),
]


def read(file: str) -> Document:
    """The file with every mistake that can be found without Spark; CommandError when there is no such
    file."""
    try:
        from mainstem.spark.pipeline.checking.validate import checked
        from mainstem.spark.pipeline.file.reader import load
    except ModuleNotFoundError as error:
        raise missing_package(error) from None
    try:
        return checked(load(file))
    except (FileNotFoundError, IsADirectoryError):
        raise _no_file(file) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise CommandError(f"{file} cannot be read: {reason.lower()}") from None


def _no_file(file: str) -> CommandError:
    folder = Path(file).parent
    names = [str(folder / name) if folder != Path() else name for name in _pipeline_files(folder)]
    hint = suggestion(file, names, "`mainstem pipeline init` writes one to start from")
    return CommandError(f"there is no file {file}", hint)


def _pipeline_files(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith((".yaml", ".yml", ".py"))]
    except OSError:
        return []


def missing_package(error: ModuleNotFoundError) -> CommandError:
    return CommandError(
        f"pipelines need the Python package {error.name}", "install it with: pip install 'mainstem[spark]'"
    )


def usable(file: str) -> Document:
    """A file without mistakes; otherwise they are shown, and the command ends."""
    document = read(file)
    if document.problems:
        show(document, document.problems)
        raise mistakes(document, document.problems)
    return document


def mistakes(document: Document, problems: list[Problem]) -> CommandError:
    count = len(problems)
    return CommandError(f"{count} mistake{'s' if count != 1 else ''} in {document.file}", exit_code=1)


def show(document: Document, problems: list[Problem]) -> None:
    """Each mistake on a line that an editor understands, and below it what to write instead."""
    colour = sys.stderr.isatty()
    for problem in problems:
        line = document.describe(problem)
        say(f"\033[1m{line}\033[0m" if colour else line)
        if problem.hint:
            say(f"  -> {problem.hint}")


def show_json(document: Document, problems: list[Problem]) -> None:
    from mainstem.spark.pipeline.problems import dotted

    found = []
    for problem in problems:
        line, column = document.locate(problem) or (None, None)
        found.append(
            {
                "file": document.file,
                "line": line,
                "column": column,
                "path": dotted(problem.path),
                "message": document.message(problem),
                "hint": problem.hint,
            }
        )
    print_json(found)
