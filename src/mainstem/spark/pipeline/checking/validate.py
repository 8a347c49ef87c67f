"""Everything that can be said of a pipeline file before Spark starts, in one call.

The form and the names are checked here; the grammar of the SQL by Spark's own parser in a bare Java process,
which is no Spark: no session, no cluster, no port. Without Java that part is left out, and the caller told
so.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from mainstem.spark.pipeline.checking.checks import check
from mainstem.spark.pipeline.file import reader
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.problems import Problem


def validate(pipeline: Pipeline | Any, folder: FilePath | None = None) -> list[Problem]:
    """Every mistake in a pipeline that a program has built."""
    return checked(reader.from_python(pipeline, folder=folder)).problems


def checked(document: Document) -> Document:
    """The document with every problem in it, in the order of the file."""
    problems = list(document.problems)
    if document.pipeline is not None:
        problems += check(document.pipeline, document.folder)
    unique = list(dict.fromkeys(problems))
    unique.sort(key=lambda problem: document.locate(problem) or (0, 0))
    return document._replace(problems=unique)
