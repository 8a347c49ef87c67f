"""What JSON and CSV share: Spark's own readers parse them, and only mark a value that does not fit.

Spark passes over an option that it does not know; so the names stand with each format, as Spark 4 lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from mainstem.spark.pipeline.formats import DATA, Format
from mainstem.spark.pipeline.formats.diagnosis import Diagnosis
from mainstem.spark.pipeline.parts import as_text
from mainstem.spark.pipeline.problems import Path, Problem, did_you_mean
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.arrow_types import arrow_function
from mainstem.spark.pipeline.schemas.ddl import Schema
from mainstem.spark.pipeline.schemas.definitions import Definition, parse_ddl
from mainstem.spark.pipeline.spark_functions import F

if TYPE_CHECKING:
    from pyspark.sql import Column

    from mainstem.spark.pipeline.sources.decode import Decode

CORRUPT = "__corrupt"
COMMON_OPTIONS = (
    "charset",
    "columnNameOfCorruptRecord",
    "compression",
    "dateFormat",
    "enableDateTimeParsingFallback",
    "encoding",
    "lineSep",
    "locale",
    "mode",
    "multiLine",
    "samplingRatio",
    "singleVariantColumn",
    "timeFormat",
    "timeZone",
    "timestampFormat",
    "timestampNTZFormat",
)
_TIME_FORMATS = ("dateformat", "timeformat", "timestampformat", "timestampntzformat")
# Those of java.time that Spark takes to parse with.
_LETTERS = frozenset("GyDMLdahKkHmsSVvzOXxZg")
_INSTEAD = {
    "Y": "the year is y",
    "u": "the year is y",
    "n": "fractions of a second are S",
    "N": "fractions of a second are S",
    "T": "a T of the text stands in quotes: 'T'",
}


class SparkReaderFormat(Format):
    """A format whose values are texts."""

    INFERS = True
    ENCODES = True
    OPTIONS: ClassVar[tuple[str, ...]]

    def check_options(self, options: Mapping[str, object], path: Path) -> Iterator[Problem]:
        known = {name.lower() for name in self.OPTIONS}
        for key, value in options.items():
            if key.lower() not in known:
                message = f"Spark's reader of {self.KIND.upper()} has no option {key!r}"
                yield Problem((*path, key), message, did_you_mean(key, self.OPTIONS), at_key=True)
            elif key.lower() in _TIME_FORMATS:
                yield from _bad_time_format(str(value), (*path, key))

    def definition_of(self, text: str, field: str) -> Definition:
        return Definition(parse_ddl(text, field))

    def decoded(self, value: Column, decode: Decode, definition: Definition) -> Column:
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT} | as_text(decode.options)
        value = _without_frame(value, decode)
        text = F.when(F.is_valid_utf8(value), value.cast("string")).otherwise(F.lit("\u0000"))
        # Never true: without it, the optimizer would parse every value twice, for the filter and for the
        # columns.
        text = F.when(F.rand() < 0, F.lit("")).otherwise(text)
        return self.parsed(text, ddl.nullable(definition.columns), options)

    def parsed(self, text: Column, columns: Schema, options: dict[str, str]) -> Column:
        """What Spark's reader makes of a text, with the column CORRUPT beside the others."""
        raise NotImplementedError

    def is_bad(self) -> Column:
        return self.row().isNull() | F.col(f"{DATA}.{CORRUPT}").isNotNull()

    def reason(self, value: Column, decode: Decode, columns: Schema, *, briefly: bool) -> Column:
        if briefly:
            shown = F.substring(F.make_valid_utf8(value.cast("string")), 1, 200)
            return F.concat(F.lit(f"not {self.KIND.upper()} of its schema: "), shown)
        why: Column = arrow_function(self.diagnosis(decode, columns), "string")(_without_frame(value, decode))
        return why

    def diagnosis(self, decode: Decode, columns: Schema) -> Diagnosis:
        """What says why a text does not fit these columns."""
        raise NotImplementedError


def _without_frame(value: Column, decode: Decode) -> Column:
    return F.substring(value, decode.frame_bytes + 1, 2**31 - 1) if decode.frame_bytes else value


def _bad_time_format(text: str, path: Path) -> Iterator[Problem]:
    """The first letter that means nothing when a time is parsed. What is in quotes is text."""
    if text.count("'") % 2:
        yield Problem(path, f"a quote of {text!r} does not close")
        return
    is_quoted = False
    for position, letter in enumerate(text):
        if letter == "'":
            is_quoted = not is_quoted
        elif not is_quoted and (letter in "#{}" or (letter.isalpha() and letter not in _LETTERS)):
            hint = _INSTEAD.get(letter, "text that is no part of the time stands in quotes: 'at'")
            yield Problem(path, f"{letter!r} in {text!r} is no part of a time", hint, (0, position))
            return
