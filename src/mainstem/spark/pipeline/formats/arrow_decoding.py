"""What formats share that Spark has no decoder for without further jars: our own decoder in Spark's workers.

It takes an Arrow array of bytes and gives a struct array: the decoded row, and the reason where a value is
not what the schema says. A bad value never fails its batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from mainstem.spark.pipeline.formats import DATA, Format
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.arrow_types import arrow_function, struct_type
from mainstem.spark.pipeline.schemas.ddl import Schema
from mainstem.spark.pipeline.spark_functions import F

if TYPE_CHECKING:
    from pyspark.sql import Column

    from mainstem.spark.pipeline.schemas.definitions import Definition
    from mainstem.spark.pipeline.sources.decode import Decode

Row = dict[str, Any]


class NotDecodable(ValueError):
    """This value is not what the schema says."""


class Decoder:
    """Decodes whole Arrow arrays. It travels to the workers, and makes what cannot travel at its first
    use."""

    NAME: ClassVar[str]

    def __init__(self, decode: Decode, definition: Definition) -> None:
        self.schema = definition.schema
        self.message = decode.message
        self._frame_bytes = decode.frame_bytes
        self._columns: Schema = definition.columns
        self._row: Callable[[bytes], Row] | None = None

    def rows(self) -> Callable[[bytes], Row]:
        """What makes a row of a value; NotDecodable, or whatever a codec raises on hostile bytes."""
        raise NotImplementedError

    def start_of_payload(self, value: bytes, position: int) -> int:
        """Where a value starts behind its frame, of which the schema id ends at this position."""
        return position

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_row": None}

    def __call__(self, values: Any) -> Any:
        import pyarrow as pa

        if self._row is None:
            self._row = self.rows()
        rows: list[dict[str, Any] | None] = []
        reasons: list[str | None] = []
        for value in values:
            row, reason = self._one(value.as_py())
            rows.append(row)
            reasons.append(reason)
        kind = struct_type(self._columns)
        try:
            decoded = pa.array(rows, kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            decoded = self._one_by_one(rows, reasons, kind)
        return pa.StructArray.from_arrays([decoded, pa.array(reasons, pa.string())], names=["row", "reason"])

    def _one(self, value: bytes | None) -> tuple[dict[str, Any] | None, str | None]:
        if value is None:
            return None, None
        assert self._row is not None
        try:
            return self._row(self._payload(value)), None
        except Exception as error:  # whatever a codec raises on hostile bytes
            return None, f"not {self.NAME} of this schema: {_brief(error)}"

    def _payload(self, value: bytes) -> bytes:
        if not self._frame_bytes:
            return value
        if len(value) < self._frame_bytes or value[0] != 0:
            raise NotDecodable("it does not start with a zero byte and a schema id")
        return value[self.start_of_payload(value, self._frame_bytes) :]

    def _one_by_one(self, rows: list[dict[str, Any] | None], reasons: list[str | None], kind: Any) -> Any:
        """Some row does not fit its type (a decimal of too many digits): find it, keep the others."""
        import pyarrow as pa

        for index, row in enumerate(rows):
            try:
                pa.array([row], kind)
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
                rows[index] = None
                reasons[index] = f"a value does not fit its column: {_brief(error)}"
        return pa.array(rows, kind)


class ArrowFormat(Format):
    """A format whose values a Decoder decodes."""

    DECODER: ClassVar[type[Decoder]]

    def decoded(self, value: Column, decode: Decode, definition: Definition) -> Column:
        columns = ", ".join(column.ddl(":") for column in ddl.nullable(definition.columns))
        decoder = arrow_function(self.DECODER(decode, definition), f"row STRUCT<{columns}>, reason STRING")
        # Where a row is to be decoded once only, what follows must not be pushed below it.
        decoded: Column = decoder.asNondeterministic()(value)
        return decoded

    def row(self) -> Column:
        return F.col(f"{DATA}.row")

    def reason(self, value: Column, decode: Decode, columns: Schema, *, briefly: bool) -> Column:
        missing = ", ".join(column.name for column in columns if not column.nullable)
        return F.coalesce(F.col(f"{DATA}.reason"), F.lit(f"one of the columns {missing} is missing"))


def _brief(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
