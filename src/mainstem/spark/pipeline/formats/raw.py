"""Values as they are: the columns of a record, and nothing of a value is a column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from mainstem.spark.pipeline.formats import Format
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.definitions import Definition

if TYPE_CHECKING:
    from mainstem.spark.pipeline.sinks.topic import TopicSink
    from mainstem.spark.pipeline.sources.decode import Decode

# As format("mainstem") gives them.
_COLUMNS = ddl.parse(
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


class Raw(Format):
    KIND = "raw"
    DECODES = False
    ENCODES = True

    def check(self, decode: Decode, path: Path, folder: FilePath) -> Iterator[Problem]:
        for name in decode.given_schemas:
            yield Problem((*path, name), "raw values have no schema", "choose another format", at_key=True)

    def definition(self, decode: Decode, folder: FilePath) -> Definition | None:
        return Definition(_COLUMNS)

    def check_encoding(self, sink: TopicSink, path: Path, folder: FilePath) -> Iterator[Problem]:
        for key in ("key", "value", "partition"):
            if getattr(sink, key) is not None:
                message = f"with encode: raw the view's own column {key} is written"
                yield Problem((*path, key), message, "leave one of the two out", at_key=True)
        yield from super().check_encoding(sink, path, folder)
