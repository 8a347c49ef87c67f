"""What every format of values answers. A format is a module of this folder: a class made from Format, with
its KIND, its checks, its columns, how values are decoded and why one cannot be, and how rows are encoded if
it can do that. Nothing else has to know of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, ClassVar

from mainstem.spark.pipeline.kinds import kinds_in
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.schemas.ddl import Schema
from mainstem.spark.pipeline.schemas.definitions import Definition, SchemaError, read_bytes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from mainstem.spark.pipeline.sinks.topic import TopicSink
    from mainstem.spark.pipeline.sources.decode import Decode

# What decoding gives, before columns are made of it, and a record as it was.
DATA = "__data"
RECORD = "__record"


class Format:
    """One format. It has no state of its own: what a pipeline says of it stands in `decode`."""

    # Its name in a file; the classes that several formats are made from have none.
    KIND: ClassVar[str] = ""
    # Whether values become rows of columns that are declared; other values stay what they are.
    DECODES: ClassVar[bool] = True
    INFERS: ClassVar[bool] = False
    HAS_MESSAGES: ClassVar[bool] = False
    ENCODES: ClassVar[bool] = False

    @property
    def missing_schema(self) -> tuple[str, str]:
        """What is wrong where no schema is given, and what to write."""
        hint = "give schema: 'id BIGINT, name STRING', or infer: 1000 to look at that many records"
        return f"the schema of {self.KIND} is missing", hint

    def check(self, decode: Decode, path: Path, folder: FilePath) -> Iterator[Problem]:
        """What is wrong with a `decode` of this format."""
        yield from self.check_options(decode.options, (*path, "options"))
        given = decode.given_schemas
        if len(given) > 1:
            yield Problem((*path, given[1]), f"{' and '.join(given)} exclude each other", at_key=True)
            return
        if decode.infer is not None and not self.INFERS:
            message = f"{self.KIND} needs its schema"
            yield Problem((*path, "infer"), message, "give schema_file", at_key=True)
            return
        if not given:
            yield Problem((*path, "format"), *self.missing_schema)
            return
        if decode.infer is not None and decode.infer < 1:
            yield Problem((*path, "infer"), "at least one record is needed to infer a schema from")
        if decode.message is not None and not self.HAS_MESSAGES:
            yield Problem((*path, "message"), "only protobuf has messages", at_key=True)
        try:
            self.definition(decode, folder)
        except SchemaError as error:
            yield Problem((*path, error.field), str(error), error.hint, error.inside)

    def check_options(self, options: Mapping[str, object], path: Path) -> Iterator[Problem]:
        if options:
            yield Problem(path, f"{self.KIND} has no options", "leave them out", at_key=True)

    def definition(self, decode: Decode, folder: FilePath) -> Definition | None:
        """What `decode` says of its columns; None where they are to be inferred. SchemaError where it says
        nothing that can be used."""
        if decode.schema is not None:
            return self.definition_of(decode.schema, "schema")
        if decode.schema_file is not None:
            text = read_bytes(decode.schema_file, folder, "schema_file").decode("utf-8", "replace")
            return self.definition_of(text, "schema_file")
        return None

    def definition_of(self, text: str, field: str) -> Definition:
        """The columns of a schema, which is the value of that field or in the file that it names."""
        raise NotImplementedError

    def infer(self, decode: Decode, values: Sequence[bytes]) -> Schema:
        """The columns that these values have in common; CannotInfer where they tell nothing."""
        raise NotImplementedError

    def decoded(self, value: Column, decode: Decode, definition: Definition) -> Column:
        """What a value is decoded to, in one column DATA. A bad value must not fail its batch."""
        raise NotImplementedError

    def row(self) -> Column:
        """The decoded row in DATA, null where there is none."""
        raise NotImplementedError

    def is_bad(self) -> Column:
        """Whether the value in DATA could not be decoded."""
        return self.row().isNull()

    def reason(self, value: Column, decode: Decode, columns: Schema, *, briefly: bool) -> Column:
        """Why a value could not be decoded. Briefly it is said in Spark's own words: a Python function would
        be called for good rows as well, wherever it stands in an expression."""
        raise NotImplementedError

    def check_encoding(self, sink: TopicSink, path: Path, folder: FilePath) -> Iterator[Problem]:
        """What is wrong with a sink that encodes with this format."""
        if sink.schema_file is not None:
            yield Problem((*path, "schema_file"), "only encode: avro has a schema", at_key=True)

    def misfits(self, sink: TopicSink, path: Path, frame: DataFrame, folder: FilePath) -> Iterator[Problem]:
        """What keeps the rows of a view from being encoded."""
        yield from ()

    def encoded(self, row: Column, sink: TopicSink, folder: FilePath) -> Column:
        """A struct of all columns as the value of a record."""
        raise NotImplementedError


_FIRST = ("json", "csv", "avro", "protobuf", "raw")
FORMATS: dict[str, Format] = {
    kind.KIND: kind() for kind in kinds_in(__name__, __path__, Format, first=_FIRST)
}
ENCODINGS = tuple(name for name, each in FORMATS.items() if each.ENCODES)
