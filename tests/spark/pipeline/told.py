"""What a pipeline's mistakes look like to whoever wrote it."""

from collections.abc import Iterable

from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.problems import Problem


def told(document: Document, problems: Iterable[Problem] | None = None, file: str = "") -> list[str]:
    """Each with its place and its hint, without the file's name if that is given."""
    return [
        f"{document.describe(problem).removeprefix(file)}{f' -> {problem.hint}' if problem.hint else ''}"
        for problem in (document.problems if problems is None else problems)
    ]
