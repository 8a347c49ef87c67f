"""The orders and payments of the demo: the same each time, in order, and what has to come out is known."""

import datetime
import json

import pytest

from mainstem.cli.demo.stream import ORDERS, PAYMENTS, SLICE_S, Record, Stream

# How far apart an order and its payment may be in the demo's join.
JOIN_WINDOW_S = 10.0
START = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


def _stream(seconds: float = 20, rate: int = 100) -> tuple[Stream, list[Record]]:
    stream = Stream(seconds, rate, START)
    return stream, [record for _, records in stream.slices() for record in records]


def test_the_same_numbers_give_the_same_records() -> None:
    assert _stream()[1] == _stream()[1]


def test_records_come_in_the_order_of_their_times_and_in_slices() -> None:
    stream = Stream(5, 100, START)
    last_s = 0.0
    for complete_s, records in stream.slices():
        assert records == sorted(records, key=lambda record: record.at_s)
        assert records[0].at_s >= last_s
        assert complete_s - SLICE_S <= records[0].at_s <= records[-1].at_s < complete_s
        last_s = records[-1].at_s


def test_what_is_expected_is_what_a_join_of_the_records_gives() -> None:
    stream, records = _stream()
    ordered: dict[int, datetime.datetime] = {}
    paid: dict[int, datetime.datetime] = {}
    for record in records:
        if record.value not in stream.expected.bad:
            value = json.loads(record.value)
            if record.topic == ORDERS:
                ordered[value["order_id"]] = datetime.datetime.fromisoformat(value["ordered_at"])
            else:
                paid[value["order_id"]] = datetime.datetime.fromisoformat(value["paid_at"])
    window = datetime.timedelta(seconds=JOIN_WINDOW_S)
    in_time = {number for number, at in paid.items() if at <= ordered[number] + window}
    expected = stream.expected
    assert expected.paid == in_time
    assert expected.paid_too_late == paid.keys() - in_time
    assert expected.unpaid == ordered.keys() - paid.keys()
    assert expected.paid | expected.paid_too_late | expected.unpaid == ordered.keys()
    assert all([expected.paid, expected.paid_too_late, expected.unpaid])


def test_every_record_is_counted_and_no_two_bad_ones_are_the_same() -> None:
    stream, records = _stream()
    assert stream.expected.orders == sum(record.topic == ORDERS for record in records)
    assert stream.expected.payments == sum(record.topic == PAYMENTS for record in records)
    bad = [record for record in records if record.value in stream.expected.bad]
    assert len(bad) == len(stream.expected.bad)
    assert {record.topic for record in bad} == {ORDERS, PAYMENTS}


@pytest.mark.parametrize(("seconds", "rate"), [(1, 1), (1.5, 3), (1, 10_000)])
def test_a_short_stream_has_an_order_that_ends_the_wait_of_all_others(seconds: float, rate: int) -> None:
    stream, records = _stream(seconds, rate)
    assert stream.expected.bad
    assert [record.topic for record in records[-2:]] == [ORDERS, PAYMENTS]
    assert records[-2].at_s > records[-3].at_s + JOIN_WINDOW_S + 60
