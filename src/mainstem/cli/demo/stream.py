"""The orders and payments of `mainstem demo`, and what a pipeline has to make of them.

The same numbers give the same records: what is expected to come out is known before anything is sent. Records
come in the order of their event times. No client here, and no clock.
"""

from __future__ import annotations

import datetime
import heapq
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

ORDERS = "orders"
PAYMENTS = "payments"

# The same as in demo_pipeline.yaml: so long an order waits for its payment.
_IN_TIME_S = (0.2, 6.0)
_TOO_LATE_S = (12.0, 16.0)
_LATE_SHARE = 0.05
_UNPAID_SHARE = 0.05
_BAD_SHARE = 0.01
# Long after everything else: with the first order of the next day, the watermark passes all of this one's.
_NEXT_DAY_S = 12 * 3600.0
# Records of so little time are acknowledged before the next are sent: no partition runs ahead of another.
SLICE_S = 0.25

_CUSTOMERS = ("ada", "bela", "chen", "dora", "emeka", "fatima", "goran", "hana")
_PRODUCTS = ("book", "lamp", "pen", "chair", "bicycle", "teapot")
_METHODS = ("card", "transfer", "voucher")


class Record(NamedTuple):
    """A record to send, `at_s` seconds after the start."""

    at_s: float
    topic: str
    key: bytes
    value: bytes


@dataclass
class Expected:
    """What was put in, and what has to come out of it."""

    orders: int = 0
    payments: int = 0
    paid: set[int] = field(default_factory=set)
    paid_too_late: set[int] = field(default_factory=set)
    unpaid: set[int] = field(default_factory=set)
    bad: dict[bytes, str] = field(default_factory=dict)  # by value: the topic


class Stream:
    """All records of one run. `expected` grows as they are taken, and is complete when they all were."""

    def __init__(self, seconds: float, rate: int, start: datetime.datetime, seed: int = 1) -> None:
        self.seconds = seconds
        self.expected = Expected()
        self._rate = rate
        self._start = start
        self._random = random.Random(seed)
        self._to_pay: list[tuple[float, int]] = []
        self._bad_count = 0

    def slices(self) -> Iterator[tuple[float, list[Record]]]:
        """The records in pieces of SLICE_S, each with the second at which it is complete."""
        for number, records in groupby(self._records(), lambda record: int(record.at_s / SLICE_S)):
            yield (number + 1) * SLICE_S, list(records)

    def _records(self) -> Iterator[Record]:
        count = max(1, int(self.seconds * self._rate))
        for number in range(count):
            at_s = number / self._rate
            yield from self._payments_until(at_s)
            yield self._order(number + 1, at_s)
            self._decide(number + 1, at_s)
            if self._random.random() < _BAD_SHARE or number == 0:
                yield self._bad(at_s)
        yield from self._payments_until(float("inf"))
        closing_s = self.seconds + _NEXT_DAY_S
        yield self._order(count + 1, closing_s)
        yield self._payment(count + 1, closing_s)
        self.expected.paid.add(count + 1)

    def _decide(self, number: int, at_s: float) -> None:
        """Whether and when the order is paid."""
        chance = self._random.random()
        if chance < _UNPAID_SHARE:
            self.expected.unpaid.add(number)
            return
        is_late = chance < _UNPAID_SHARE + _LATE_SHARE
        (self.expected.paid_too_late if is_late else self.expected.paid).add(number)
        delay_s = self._random.uniform(*(_TOO_LATE_S if is_late else _IN_TIME_S))
        heapq.heappush(self._to_pay, (at_s + delay_s, number))

    def _payments_until(self, end_s: float) -> Iterator[Record]:
        while self._to_pay and self._to_pay[0][0] <= end_s:
            at_s, number = heapq.heappop(self._to_pay)
            yield self._payment(number, at_s)

    def _order(self, number: int, at_s: float) -> Record:
        self.expected.orders += 1
        return _record(ORDERS, at_s, number, self._order_value(number, at_s))

    def _order_value(self, number: int, at_s: float) -> dict[str, object]:
        return {
            "order_id": number,
            "customer": self._random.choice(_CUSTOMERS),
            "product": self._random.choice(_PRODUCTS),
            "amount": self._random.randrange(100, 50_000) / 100,
            "ordered_at": self._time(at_s),
        }

    def _payment(self, number: int, at_s: float) -> Record:
        self.expected.payments += 1
        value = {
            "order_id": number,
            "method": self._random.choice(_METHODS),
            "paid_at": self._time(at_s),
        }
        return _record(PAYMENTS, at_s, number, value)

    def _bad(self, at_s: float) -> Record:
        """A record that cannot be used: one kind after the other, and no two the same."""
        self._bad_count += 1
        number = -self._bad_count
        order = self._order_value(number, at_s)
        kind = self._bad_count % 5
        if kind == 1:  # cut off
            record = Record(at_s, ORDERS, b"%d" % number, json.dumps(order)[:-9].encode())
        elif kind == 2:
            record = _record(ORDERS, at_s, number, order | {"amount": "a lot"})
        elif kind == 3:
            record = _record(ORDERS, at_s, number, order | {"amount": -1.0})
        elif kind == 4:
            record = Record(at_s, PAYMENTS, b"%d" % number, b"\xff\xfe not JSON, not even text: %d" % number)
        else:
            record = _record(PAYMENTS, at_s, number, {"order_id": number, "method": "card"})
        if record.topic == ORDERS:
            self.expected.orders += 1
        else:
            self.expected.payments += 1
        self.expected.bad[record.value] = record.topic
        return record

    def _time(self, at_s: float) -> str:
        return (self._start + datetime.timedelta(seconds=at_s)).isoformat(timespec="microseconds")


def _record(topic: str, at_s: float, number: int, value: dict[str, object]) -> Record:
    return Record(at_s, topic, b"%d" % number, json.dumps(value).encode())
