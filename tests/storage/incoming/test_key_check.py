"""The quick look at keys finds what reading the records finds, and never believes a length."""

from hypothesis import given
from hypothesis import strategies as st

from mainstem.records.batch import HEADER_SIZE
from mainstem.records.record import Record, RecordError, build_batch
from mainstem.storage.incoming.key_check import keyless_records

_BYTES = st.none() | st.binary(max_size=200)
_RECORDS = st.lists(
    st.builds(
        Record,
        st.just(0),
        st.integers(0, 2**40),
        _BYTES,
        _BYTES,
        st.lists(st.tuples(st.text(max_size=5), _BYTES), max_size=3),
    ),
    min_size=1,
    max_size=300,
)


@given(_RECORDS)
def test_every_record_without_a_key_is_found(records: list[Record]) -> None:
    data = bytes(build_batch(records)[HEADER_SIZE:])
    found, end = keyless_records(data, 0, 0, len(records))
    assert end == len(data)
    assert found == [index for index, record in enumerate(records) if record.key is None]


@given(_RECORDS, st.integers(0, 10**6), st.integers(0, 255), st.integers(-2, 2))
def test_damaged_records_are_refused_or_read(
    records: list[Record], position: int, byte: int, more: int
) -> None:
    data = bytearray(build_batch(records)[HEADER_SIZE:])
    data[position % len(data)] = byte
    count = max(0, len(records) + more)
    try:
        found, _ = keyless_records(bytes(data), 0, 0, count)
    except RecordError:
        return
    assert all(0 <= index < count for index in found)
