"""The checks of `decode`: what goes together, the schema, and the options of Spark's JSON and CSV readers.

Spark passes over an option that it does not know; so its names stand here, as Spark 4 lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath

from mainstem.spark.pipeline.model import Decode
from mainstem.spark.pipeline.problems import Path, Problem, did_you_mean
from mainstem.spark.pipeline.schemas import definitions

_BOTH = (
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
_JSON = (
    "allowBackslashEscapingAnyCharacter",
    "allowComments",
    "allowNonNumericNumbers",
    "allowNumericLeadingZeros",
    "allowSingleQuotes",
    "allowUnquotedControlChars",
    "allowUnquotedFieldNames",
    "dropFieldIfAllNull",
    "ignoreNullFields",
    "inferTimestamp",
    "prefersDecimal",
    "pretty",
    "primitivesAsString",
    "sortKeys",
    "useUnsafeRow",
    "writeNonAsciiCharacterAsCodePoint",
)
_CSV = (
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
OPTIONS = {"json": (*_BOTH, *_JSON), "csv": (*_BOTH, *_CSV)}
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


def check_decode(decode: Decode, path: Path, folder: FilePath) -> Iterator[Problem]:
    given = [name for name in ("schema", "schema_file", "infer") if getattr(decode, name) is not None]
    if decode.format == "raw":
        for name in given:
            yield Problem((*path, name), "raw values have no schema", "choose another format", at_key=True)
        return
    yield from _options(decode, (*path, "options"))
    if len(given) > 1:
        yield Problem((*path, given[1]), f"{' and '.join(given)} exclude each other", at_key=True)
        return
    if decode.format in ("avro", "protobuf") and decode.infer is not None:
        yield Problem((*path, "infer"), f"{decode.format} needs its schema", "give schema_file", at_key=True)
        return
    if not given and decode.format != "protobuf":
        hint = "give schema: 'id BIGINT, name STRING', or infer: 1000 to look at that many records"
        yield Problem((*path, "format"), f"the schema of {decode.format} is missing", hint)
        return
    if decode.infer is not None and decode.infer < 1:
        yield Problem((*path, "infer"), "at least one record is needed to infer a schema from")
    if decode.message is not None and decode.format != "protobuf":
        yield Problem((*path, "message"), "only protobuf has messages", at_key=True)
    if decode.format == "csv" and decode.framing != "none":
        yield Problem((*path, "framing"), "CSV has no framing", at_key=True)
    try:
        definitions.definition(decode, folder)
    except definitions.SchemaError as error:
        yield Problem((*path, error.field), str(error), error.hint, error.inside)


def _options(decode: Decode, path: Path) -> Iterator[Problem]:
    names = OPTIONS.get(decode.format)
    if names is None:
        if decode.options:
            yield Problem(path, f"{decode.format} has no options", "leave them out", at_key=True)
        return
    known = {name.lower() for name in names}
    for key, value in decode.options.items():
        if key.lower() not in known:
            message = f"Spark's reader of {decode.format.upper()} has no option {key!r}"
            yield Problem((*path, key), message, did_you_mean(key, names), at_key=True)
        elif key.lower() in _TIME_FORMATS:
            yield from _time_format(str(value), (*path, key))


def _time_format(text: str, path: Path) -> Iterator[Problem]:
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
