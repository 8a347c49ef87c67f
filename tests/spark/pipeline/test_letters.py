"""The headers of dead letters are read back, and a record is sent again with its own headers only."""

from mainstem.spark.pipeline import letters

HEADERS = [
    ("trace", b"abc"),
    ("empty", None),
    (letters.REASON, "not JSON: für".encode()),
    (letters.TOPIC, b"orders"),
    (letters.PARTITION, b"2"),
    (letters.OFFSET, b"17"),
    (letters.TIMESTAMP, b"1700000000000"),
    (letters.PIPELINE, b"p"),
    (letters.STEP, b"orders.decode"),
    (letters.AT, b"2026-01-31T12:00:00.000Z"),
]


def test_a_letter_is_read_back() -> None:
    letter = letters.read(HEADERS)
    assert letter is not None
    assert (letter.topic, letter.partition, letter.offset) == ("orders", 2, 17)
    assert (letter.reason, letter.step, letter.pipeline) == ("not JSON: für", "orders.decode", "p")
    assert letter.headers == [("trace", b"abc"), ("empty", None)]
    assert letters.replayed_headers(letter) == [("trace", b"abc"), ("empty", None), (letters.REPLAYED, b"1")]


def test_replays_are_counted() -> None:
    letter = letters.read([*HEADERS, (letters.REPLAYED, b"3")])
    assert letter is not None
    assert letters.replayed_headers(letter)[-1] == (letters.REPLAYED, b"4")


def test_other_records_are_no_letters() -> None:
    assert letters.read([("trace", b"abc")]) is None
    assert letters.read([(name, b"x") for name, _ in HEADERS]) is None
