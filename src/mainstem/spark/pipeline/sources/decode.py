"""`decode`: how the bytes of a record's value become columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from mainstem.spark.pipeline.formats import FORMATS, Format
from mainstem.spark.pipeline.parts import Options, Part
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.schemas.ddl import Schema
from mainstem.spark.pipeline.schemas.definitions import Definition

if TYPE_CHECKING:
    from mainstem.spark.pipeline.checking.rules import CheckContext

    FormatName = str
else:
    FormatName = Literal[tuple(FORMATS)]

# A magic byte and the id of a schema, as the serializers of a schema registry put them before a value.
_CONFLUENT_FRAME_BYTES = 5


class Decode(Part, frozen=True, kw_only=True):
    """How the bytes of a record's value become columns."""

    SHORT: ClassVar[str | None] = "format"

    format: Annotated[FormatName, Meta(description="the format of the values")] = "json"
    schema: Annotated[
        str | None,
        Meta(description="the columns: DDL such as `id BIGINT NOT NULL, name STRING`, or Avro's JSON"),
    ] = None
    schema_file: Annotated[
        str | None,
        Meta(description="a file with DDL, an Avro schema (.avsc), or a Protobuf descriptor set (.desc)"),
    ] = None
    message: Annotated[str | None, Meta(description="the Protobuf message, with its package")] = None
    infer: Annotated[
        int | None, Meta(description="infer the schema of JSON or CSV from this many records of the topic")
    ] = None
    framing: Annotated[
        Literal["none", "confluent"],
        Meta(description="`confluent`: skip the magic byte and schema id in front of each value"),
    ] = "none"
    options: Annotated[
        Options, Meta(description="options of Spark's JSON or CSV reader, such as `timestampFormat`")
    ] = {}

    @property
    def codec(self) -> Format:
        return FORMATS[self.format]

    @property
    def given_schemas(self) -> list[str]:
        """The keys that say what the columns are; one is enough."""
        return [key for key in ("schema", "schema_file", "infer") if getattr(self, key) is not None]

    @property
    def frame_bytes(self) -> int:
        """How many bytes stand before what is to be decoded."""
        return _CONFLUENT_FRAME_BYTES if self.framing == "confluent" else 0

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        yield from self.codec.check(self, path, context.folder)

    def definition(self, folder: FilePath) -> Definition | None:
        """The columns; None where they are to be inferred, SchemaError where nothing can be made of it."""
        return self.codec.definition(self, folder)

    def infer_columns(self, values: Sequence[bytes]) -> Schema:
        """The columns that these values have in common; CannotInfer where they tell nothing."""
        return self.codec.infer(self, [value[self.frame_bytes :] for value in values])
