"""`file`: a table that Spark reads from files, once for each batch, to join with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from mainstem.spark.pipeline.checking.rules import CheckContext, bad_ddl
from mainstem.spark.pipeline.parts import Options, as_text
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.sources import Source, SourceFrames

if TYPE_CHECKING:
    from mainstem.spark.pipeline.running.context import BuildContext

# The format by the ending of a file's name.
_FORMATS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".parquet": "parquet",
    ".orc": "orc",
    ".txt": "text",
}


class FileSource(Source, frozen=True, kw_only=True):
    """A table that does not stream, to join with."""

    KIND: ClassVar[tuple[str, ...]] = ("file",)

    file: Annotated[str, Meta(description="a file or folder that Spark reads")]
    format: Annotated[
        Literal["csv", "json", "parquet", "orc", "text"] | None,
        Meta(description="its format; by the name's ending otherwise"),
    ] = None
    schema: Annotated[str | None, Meta(description="the columns as DDL; inferred otherwise")] = None
    options: Annotated[Options, Meta(description="options of Spark's reader; CSV has `header` on")] = {}

    def describe(self) -> str:
        return f"file {self.file}"

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        if "://" not in self.file:
            place = context.folder / FilePath(self.file).expanduser()
            if not place.exists() and not any(mark in self.file for mark in "*?["):
                yield Problem((*path, "file"), f"there is no {self.file}")
        if self._kind is None:
            hint = "add format: csv, json, parquet, orc or text"
            yield Problem((*path, "file"), f"the format of {self.file} cannot be told by its name", hint)
        yield from bad_ddl(self.schema, (*path, "schema"))

    @property
    def _kind(self) -> str | None:
        return self.format or _FORMATS.get(FilePath(self.file).suffix.lower())

    def read(self, context: BuildContext) -> SourceFrames:
        options: dict[str, str] = {"header": "true"} if self._kind == "csv" else {}
        if self.schema is None and self._kind == "csv":
            options["inferSchema"] = "true"
        reader = context.spark.read.options(**(options | as_text(self.options)))
        if self._kind is not None:
            reader = reader.format(self._kind)
        if self.schema is not None:
            reader = reader.schema(self.schema)
        return SourceFrames(reader.load(context.places.path(self.file)))
