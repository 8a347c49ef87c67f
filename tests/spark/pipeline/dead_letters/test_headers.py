"""The headers of dead letters are read back, and a record is sent again with its own headers only."""

from mainstem.spark.pipeline.dead_letters import headers

HEADERS = [
    ("trace", b"abc"),
    ("empty", None),
    (headers.REASON, "not JSON: für".encode()),
    (headers.TOPIC, b"orders"),
    (headers.PARTITION, b"2"),
    (headers.OFFSET, b"17"),
    (headers.TIMESTAMP, b"1700000000000"),
    (headers.PIPELINE, b"p"),
    (headers.STEP, b"orders.decode"),
    (headers.AT, b"2026-01-31T12:00:00.000Z"),
]


def test_a_dead_letter_is_read_back() -> None:
    letter = headers.read_dead_letter(HEADERS)
    assert letter is not None
    assert (letter.topic, letter.partition, letter.offset) == ("orders", 2, 17)
    assert (letter.reason, letter.step, letter.pipeline) == ("not JSON: für", "orders.decode", "p")
    assert letter.headers == [("trace", b"abc"), ("empty", None)]
    assert headers.replayed_headers(letter) == [("trace", b"abc"), ("empty", None), (headers.REPLAYED, b"1")]


def test_replays_are_counted() -> None:
    letter = headers.read_dead_letter([*HEADERS, (headers.REPLAYED, b"3")])
    assert letter is not None
    assert headers.replayed_headers(letter)[-1] == (headers.REPLAYED, b"4")


def test_other_records_are_no_dead_letters() -> None:
    assert headers.read_dead_letter([("trace", b"abc")]) is None
    assert headers.read_dead_letter([(name, b"x") for name, _ in HEADERS]) is None
