"""Record batches to Arrow columns and back, in compiled code and with no Python object per record.

For the data pipeline. Importing it loads numba and pyarrow, so the broker never does.
"""

from mainstem.records.columnar.decode import Decoded, decode
from mainstem.records.columnar.encode import encode
from mainstem.records.columnar.errors import CorruptRecordsError
from mainstem.records.columnar.murmur2 import murmur2_partitions

__all__ = ["CorruptRecordsError", "Decoded", "decode", "encode", "murmur2_partitions"]
