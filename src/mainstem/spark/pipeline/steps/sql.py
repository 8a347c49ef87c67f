"""`sql` or `sql_file`: a view that a query defines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from mainstem.spark.pipeline import sql_tokens
from mainstem.spark.pipeline.checking.refusals import refused_piece
from mainstem.spark.pipeline.checking.rules import CheckContext
from mainstem.spark.pipeline.parts import Input, SqlPiece, shortened
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.steps import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.running.context import BuildContext


class SqlStep(Step, frozen=True, kw_only=True):
    """A view that a SQL query defines over other views."""

    KIND: ClassVar[tuple[str, ...]] = ("sql", "sql_file")
    SHORT: ClassVar[str | None] = "sql"

    sql: Annotated[str | None, Meta(description="the query; views are its tables")] = None
    sql_file: Annotated[str | None, Meta(description="a file with the query")] = None

    @property
    def sql_key(self) -> str:
        """The key under which the query stands, or the file with it."""
        return "sql" if self.sql is not None else "sql_file"

    def text(self, folder: FilePath) -> str:
        """The query, also from its file."""
        if self.sql is not None:
            return self.sql
        return (folder / FilePath(self.sql_file or "").expanduser()).read_text(encoding="utf-8")

    def describe(self) -> str:
        return f"sql {shortened(self.sql or self.sql_file or '')}"

    def input_views(self, path: Path, folder: FilePath) -> list[Input]:
        try:
            text = self.text(folder)
            references = sql_tokens.table_references(text)
        except (OSError, UnicodeDecodeError, sql_tokens.SqlError):
            return []
        return [
            Input(each.name, (*path, self.sql_key), sql_tokens.line_and_column(text, each.position))
            for each in references
            if not each.qualified
        ]

    def sql_pieces(self, path: Path, folder: FilePath) -> Iterator[SqlPiece]:
        try:
            yield SqlPiece((*path, self.sql_key), self.text(folder), is_query=True)
        except (OSError, UnicodeDecodeError):
            return  # that is said already

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        if self.sql is not None and self.sql_file is not None:
            yield Problem((*path, "sql_file"), "sql and sql_file exclude each other", at_key=True)
            return
        where: Path = (*path, self.sql_key)
        try:
            text = self.text(context.folder)
            found = sql_tokens.check(text)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            yield Problem(where, f"{self.sql_file} cannot be read: {reason.lower()}")
            return
        except sql_tokens.SqlError:
            return  # it is said of every SQL text
        if found[0].keyword not in ("SELECT", "WITH", "FROM", "VALUES", "TABLE") and found[0].text != "(":
            message = f"a step's SQL is a query, not {found[0].text}"
            yield Problem(where, message, "it starts with SELECT or WITH")
        ends = [token for token in found[:-1] if token.text == ";" and token.kind == "symbol"]
        if ends:
            inside = sql_tokens.line_and_column(text, ends[0].position)
            yield Problem(where, "a step has one query", "give the second one its own step", inside)

    def make(self, context: BuildContext) -> DataFrame:
        return context.spark.sql(self.text(context.folder).strip().rstrip(";"))

    def refused_pieces(self, context: BuildContext) -> Iterator[Problem]:
        where = (*context.path, self.sql_key)
        yield from refused_piece(lambda: self.make(context), where, self.text(context.folder))
