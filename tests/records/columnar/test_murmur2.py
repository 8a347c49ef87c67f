"""Keys go to the partitions that the Java client and kafka-python choose."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from mainstem.records.columnar import murmur2_partitions


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # From the tests of the Java client.
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_known_hashes(key: str, hashed: int) -> None:
    for count in (1, 2, 7, 1000, 2**31 - 1):
        expected = (hashed & 0x7FFFFFFF) % count
        assert murmur2_partitions(pa.array([key]), count).tolist() == [expected]


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(1, 2**31 - 1))
def test_kafka_python_chooses_the_same(keys: list[bytes | None], count: int) -> None:
    expected = [-1 if key is None else (murmur2(key) & 0x7FFFFFFF) % count for key in keys]
    assert murmur2_partitions(pa.array(keys, pa.binary()), count).tolist() == expected
    assert murmur2_partitions(pa.array([b"before", *keys], pa.binary())[1:], count).tolist() == expected


@pytest.mark.parametrize("count", [0, -1, 2**31])
def test_a_topic_has_partitions(count: int) -> None:
    with pytest.raises(ValueError, match="no number of partitions"):
        murmur2_partitions(pa.array([b"key"]), count)
