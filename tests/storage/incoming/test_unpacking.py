"""How large the records of a batch may become when they are looked at."""

import pytest

from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import read_header
from mainstem.records.compression import Codec
from mainstem.records.record import assemble, record_bytes
from mainstem.storage.errors import UnstorableBatchError
from mainstem.storage.incoming.unpacking import size_limit, unpacked
from tests.storage.log_helpers import batch

MIB = 2**20


@pytest.mark.parametrize(
    ("max_message_bytes", "limit"),
    [(0, 16 * MIB), (MIB // 4, 16 * MIB), (MIB, 64 * MIB), (4 * MIB, 256 * MIB), (100 * MIB, 256 * MIB)],
)
def test_the_limit_follows_the_largest_batch_within_bounds(max_message_bytes: int, limit: int) -> None:
    assert size_limit(LogConfig(max_message_bytes=max_message_bytes)) == limit


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_records_up_to_the_limit_are_taken(codec: Codec) -> None:
    data = batch(1, value=bytes(20_000), codec=codec)
    size = len(record_bytes(data))
    config = LogConfig(max_message_bytes=size, compression_type="uncompressed")
    assert len(unpacked(data, config, "t-0")) == size
    with pytest.raises(UnstorableBatchError) as refused:
        unpacked(data, LogConfig(max_message_bytes=size - 1, compression_type="uncompressed"), "t-0")
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "t-0" in str(refused.value.message)
    assert str(size - 1) in str(refused.value.message)


def test_what_cannot_be_read_is_refused_for_good() -> None:
    header = read_header(batch(1, codec=Codec.LZ4))
    with pytest.raises(UnstorableBatchError) as refused:
        unpacked(memoryview(assemble(header, b"no frame")), LogConfig(), "t-0")
    assert refused.value.code is ErrorCode.INVALID_RECORD
