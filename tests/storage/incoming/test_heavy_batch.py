"""A batch that is looked into step by step ends as one that the log looks into itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.config import LogConfig
from mainstem.protocol.errors import KafkaError
from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch
from mainstem.storage.errors import InvalidRecordError
from mainstem.storage.incoming.heavy_batch import HeavyBatch, is_heavy
from mainstem.storage.incoming.validation import Origin, rewrite_batch

_NOW_MS = 1_700_000_000_000
_POLICIES = [frozenset({"delete"}), frozenset({"compact"}), frozenset({"compact", "delete"})]
_CONFIGS = st.builds(
    LogConfig,
    cleanup_policy=st.sampled_from(_POLICIES),
    compression_type=st.sampled_from(["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]),
)


def _batch(count: int, keyless: int | None, codec: Codec) -> bytearray:
    records = [
        Record(0, _NOW_MS, None if index == keyless else b"%d" % index, b"value") for index in range(count)
    ]
    return build_batch(records, compression=codec)


def _prepared(data: memoryview, config: LogConfig) -> HeavyBatch:
    heavy = HeavyBatch(data, config, "t-0")
    if heavy.wants_keys:
        heavy.open()
        while heavy.check_some():
            pass
    if heavy.wants_compression:
        heavy.recompress()
    heavy.finish()
    return heavy


def _outcome(data: memoryview, config: LogConfig, prepared: HeavyBatch | None) -> object:
    try:
        return bytes(rewrite_batch(data, config, Origin.CLIENT, _NOW_MS, "t-0", prepared))
    except InvalidRecordError as error:
        return error.code, error.message, error.record_errors
    except KafkaError as error:
        return error.code, error.message


@given(
    _CONFIGS,
    st.sampled_from([1, 999, 1_000, 1_001, 2_500]),
    st.none() | st.integers(0, 2_499),
    st.sampled_from(list(Codec)),
    st.none() | st.tuples(st.integers(61, 400), st.integers(0, 255)),
)
def test_step_by_step_or_at_once(
    config: LogConfig, count: int, keyless: int | None, codec: Codec, damage: tuple[int, int] | None
) -> None:
    data = _batch(count, keyless, codec)
    if damage is not None:
        position, byte = damage
        data[min(position, len(data) - 1)] = byte
    apart, at_once = memoryview(bytearray(data)), memoryview(data)
    assert _outcome(apart, config, _prepared(apart, config)) == _outcome(at_once, config, None)


def test_what_was_not_finished_or_had_other_settings_counts_for_nothing() -> None:
    compact = LogConfig(cleanup_policy=frozenset({"compact"}))
    data = memoryview(_batch(3_000, 2_999, Codec.NONE))
    heavy = HeavyBatch(data, compact, "t-0")
    for step in (lambda: None, heavy.open, heavy.check_some):
        step()
        assert heavy.result(compact) is None
    while heavy.check_some():
        pass
    assert heavy.result(compact) is None
    heavy.finish()
    assert heavy.result(LogConfig()) is None
    with pytest.raises(InvalidRecordError):
        heavy.result(compact)


@pytest.mark.parametrize(
    ("codec", "count", "compact", "stored", "heavy"),
    [
        (Codec.NONE, 10, True, "producer", False),
        (Codec.NONE, 3_000, True, "producer", True),
        (Codec.NONE, 3_000, False, "producer", False),
        (Codec.NONE, 3_000, False, "uncompressed", False),
        (Codec.NONE, 3_000, False, "lz4", False),
        (Codec.NONE, 60_000, False, "lz4", True),
        (Codec.NONE, 3_000, False, "gzip", True),
        (Codec.LZ4, 60_000, False, "zstd", True),
        (Codec.LZ4, 10, True, "producer", False),
        (Codec.LZ4, 10, False, "gzip", False),
        (Codec.ZSTD, 1, True, "producer", True),
        (Codec.ZSTD, 3_000, False, "producer", False),
        (Codec.ZSTD, 3_000, False, "zstd", False),
        (Codec.ZSTD, 1, False, "gzip", True),
    ],
)
def test_which_batches_are_heavy(codec: Codec, count: int, compact: bool, stored: str, heavy: bool) -> None:
    policy = frozenset({"compact" if compact else "delete"})
    config = LogConfig(cleanup_policy=policy, compression_type=stored, max_message_bytes=10_000_000)
    assert is_heavy(memoryview(_batch(count, None, codec)), config) is heavy


@given(st.binary(max_size=200))
def test_what_is_no_batch_is_not_heavy(data: bytes) -> None:
    assert not is_heavy(memoryview(data), LogConfig(cleanup_policy=frozenset({"compact"})))
