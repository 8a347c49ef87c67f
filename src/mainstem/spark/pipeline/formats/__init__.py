"""The formats of records' values: one module for each, which holds all that there is to it."""

from mainstem.spark.pipeline.formats.format import Format
from mainstem.spark.pipeline.kinds import kinds_in

_FIRST = ("json", "csv", "avro", "protobuf", "raw")
FORMATS: dict[str, Format] = {
    kind.KIND: kind() for kind in kinds_in(__name__, __path__, Format, first=_FIRST)
}
ENCODINGS = tuple(name for name, each in FORMATS.items() if each.ENCODES)
