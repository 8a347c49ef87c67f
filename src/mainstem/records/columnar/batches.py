"""The batches in a run of bytes: found, checked against their checksums, and their records uncompressed.

What is wrong with one of them is a CorruptRecordsError that names its first offset.
"""

import numpy as np

from mainstem.records.batch import ATTRIBUTES_POSITION, Buffer
from mainstem.records.columnar import scan
from mainstem.records.columnar.errors import OK, REASONS, RECORD_COUNT, CorruptRecordsError
from mainstem.records.columnar.layout import BATCH, Bytes, Table
from mainstem.records.columnar.walk import RECORD_SIZE_MIN
from mainstem.records.compression import Codec, CompressionError, decompress
from mainstem.records.crc import crc32c
from mainstem.records.record import DECOMPRESSED_SIZE_MAX


def find_batches(octets: Bytes, end_offset: int) -> tuple[Table, bool]:
    """The whole batches that begin before an offset, and whether one that does not was seen."""
    facts = np.zeros(scan.SCAN_FACTS, np.int64)
    mistake = scan.count_batches(octets, end_offset, facts)
    if mistake != OK:
        raise CorruptRecordsError(int(facts[scan.FAILED_OFFSET]), REASONS[mistake])
    batches = np.empty(int(facts[scan.COUNTED]), BATCH)
    scan.read_headers(octets, batches)
    return batches, bool(facts[scan.SAW_END])


def check_crcs(view: memoryview, batches: Table) -> None:
    columns = (batches[name].tolist() for name in ("start", "stop", "crc"))
    for row, (start, stop, crc) in enumerate(zip(*columns, strict=True)):
        computed = crc32c(view[start + ATTRIBUTES_POSITION : stop])
        if computed != crc:
            raise CorruptRecordsError(
                int(batches["base_offset"][row]),
                f"its checksum is wrong: its CRC-32C is {crc:08x}, that of its bytes is {computed:08x}",
            )


def plain_records(code: int, payload: memoryview, batches: Table, row: int) -> Buffer:
    """The records of a batch without their compression."""
    if code == Codec.NONE:
        return payload
    offset = int(batches["base_offset"][row])
    if code > Codec.ZSTD:
        raise CorruptRecordsError(offset, f"it names an unknown compression, {code}")
    try:
        return decompress(Codec(code), payload, DECOMPRESSED_SIZE_MAX)
    except CompressionError as error:
        raise CorruptRecordsError(offset, str(error)) from None


def check_counts(batches: Table) -> None:
    """No batch claims more records than there is room for between `position` and `end`."""
    counts = batches["record_count"].astype(np.int64)
    lying = (counts < 0) | (counts * RECORD_SIZE_MIN > batches["end"] - batches["position"])
    if lying.any():
        raise CorruptRecordsError(int(batches["base_offset"][lying.argmax()]), REASONS[RECORD_COUNT])
