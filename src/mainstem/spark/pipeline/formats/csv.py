"""CSV: one line in each value."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mainstem.spark.pipeline.formats import DATA
from mainstem.spark.pipeline.formats.diagnosis import (
    Diagnosis,
    is_fractional,
    is_in_range,
    is_of_time,
    is_time,
    is_whole,
    shown,
)
from mainstem.spark.pipeline.formats.spark_reader import COMMON_OPTIONS, CORRUPT, SparkReaderFormat
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.ddl import Column as SchemaColumn
from mainstem.spark.pipeline.schemas.ddl import DataType, Schema
from mainstem.spark.pipeline.spark_functions import F

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from pyspark.sql import Column

    from mainstem.spark.pipeline.sinks.topic import TopicSink
    from mainstem.spark.pipeline.sources.decode import Decode


class Csv(SparkReaderFormat):
    KIND = "csv"
    OPTIONS = (
        *COMMON_OPTIONS,
        "charToEscapeQuoteEscaping",
        "codec",
        "columnPruning",
        "comment",
        "delimiter",
        "emptyValue",
        "enforceSchema",
        "escape",
        "escapeQuotes",
        "extension",
        "header",
        "ignoreLeadingWhiteSpace",
        "ignoreTrailingWhiteSpace",
        "inferSchema",
        "inputBufferSize",
        "maxCharsPerColumn",
        "maxColumns",
        "nanValue",
        "negativeInf",
        "nullValue",
        "positiveInf",
        "preferDate",
        "quote",
        "quoteAll",
        "sep",
        "unescapedQuoteHandling",
    )

    def check(self, decode: Decode, path: Path, folder: FilePath) -> Iterator[Problem]:
        yield from super().check(decode, path, folder)
        if decode.framing != "none":
            yield Problem((*path, "framing"), "CSV has no framing", at_key=True)

    def infer(self, decode: Decode, values: Sequence[bytes]) -> Schema:
        """Columns named _c0, _c1 and so on, as Spark names them."""
        from mainstem.spark.pipeline.schemas.inference import NOTHING, CannotInfer, merged, settled, type_of

        columns: list[DataType] = []
        for value in values:
            try:
                cells = next(csv.reader([value.decode("utf-8")], delimiter=_delimiter(decode)), [])
            except (UnicodeDecodeError, csv.Error):
                continue
            columns += [NOTHING] * (len(cells) - len(columns))
            for index, cell in enumerate(cells):
                columns[index] = merged(columns[index], type_of(_value(cell)))
        if not columns:
            raise CannotInfer("no value in the sample is a line of CSV")
        return tuple(SchemaColumn(f"_c{index}", settled(kind)) for index, kind in enumerate(columns))

    def parsed(self, text: Column, columns: Schema, options: dict[str, str]) -> Column:
        # Quotes within quotes are doubled, as RFC 4180 has it; Spark would have a backslash before them.
        options = {"escape": options.get("quote", '"')} | options
        return F.from_csv(text, F.lit(f"{ddl.render(columns)}, {CORRUPT} STRING"), options)

    def row(self) -> Column:
        return F.col(DATA)

    def diagnosis(self, decode: Decode, columns: Schema) -> Diagnosis:
        return CsvDiagnosis(columns, _delimiter(decode))

    def encoded(self, row: Column, sink: TopicSink, folder: FilePath) -> Column:
        return F.to_csv(row)


class CsvDiagnosis(Diagnosis):
    """Why a text is no line of these columns."""

    def __init__(self, columns: Schema, delimiter: str = ",") -> None:
        super().__init__(columns)
        self._delimiter = delimiter

    def misfit(self, text: str) -> str | None:
        try:
            rows = list(csv.reader([text], delimiter=self._delimiter))
        except csv.Error as error:
            return f"not CSV: {error}"
        cells = rows[0] if rows else []
        if len(cells) != len(self.columns):
            return f"{len(cells)} columns instead of {len(self.columns)}"
        for cell, column in zip(cells, self.columns, strict=True):
            if cell and not _fits(cell, column.type):
                return f"column {column.name}: {shown(cell)} is not {column.type.ddl()}"
        return None


def _fits(cell: str, kind: DataType) -> bool:
    try:
        if is_whole(kind):
            return is_in_range(int(cell), kind)
        if is_fractional(kind):
            float(cell)
            return True
    except ValueError:
        return False
    if kind.name == "boolean":
        return cell.lower() in ("true", "false")
    return is_time(cell) if is_of_time(kind) else True


def _delimiter(decode: Decode) -> str:
    return str(decode.options.get("sep", decode.options.get("delimiter", ",")))


def _value(text: str) -> Any:
    if not text:
        return None
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text
