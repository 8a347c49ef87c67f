"""Prometheus' text format, read back by Prometheus' own Python parser."""

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from mainstem.metrics import Exposition, TimeHistogram, add_histogram, label

NUMBERS = st.one_of(st.integers(-(2**60), 2**60), st.floats())
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(TEXTS, NUMBERS), max_size=5, unique_by=lambda pair: pair[0]), TEXTS)
def test_any_name_and_any_number_come_back_as_they_were(
    samples: list[tuple[str, float]], help_text: str
) -> None:
    out = Exposition()
    gauge = out.gauge("some_gauge", help_text)
    for name, value in samples:
        gauge.add(value, f'{label("group", name)},partition="0"')
    (family,) = text_string_to_metric_families(out.text())
    assert (family.name, family.type) == ("some_gauge", "gauge")
    assert [sample.labels for sample in family.samples] == [
        {"group": name, "partition": "0"} for name, _ in samples
    ]
    for sample, (_, value) in zip(family.samples, samples, strict=True):
        assert sample.value == value or (math.isnan(value) and math.isnan(sample.value))


def test_a_name_that_is_no_unicode_is_shown_all_the_same() -> None:
    out = Exposition()
    out.gauge("some_gauge", "").add(1, label("group", "a\ud800b"))
    (family,) = text_string_to_metric_families(out.text())
    assert family.samples[0].labels == {"group": "a?b"}


def test_a_histogram_adds_up() -> None:
    histogram = TimeHistogram()
    for taken_ns in (0, 5_000, 20_000, 1_000_000, 2_000_000_000, 10**12, -5):
        histogram.observe_ns(taken_ns)
    out = Exposition()
    add_histogram(out.histogram("x_seconds", "How long."), histogram, label("api", "Fetch"))
    (family,) = text_string_to_metric_families(out.text())
    buckets = [sample for sample in family.samples if sample.name == "x_seconds_bucket"]
    counts = [sample.value for sample in buckets]
    edges = [float(sample.labels["le"]) for sample in buckets]
    assert counts == sorted(counts)
    assert edges == sorted(edges)
    assert edges[-1] == math.inf
    values = {sample.name: sample.value for sample in family.samples}
    assert values["x_seconds_count"] == counts[-1] == 7
    assert values["x_seconds_sum"] == 0.001025 + 1002
    below = dict(zip(edges, counts, strict=True))
    assert below[8.192e-06] == 3
    assert below[next(edge for edge in edges if edge >= 0.001)] == 5
    assert below[edges[-2]] == 6


def test_what_is_too_much_of_a_name_is_left_out_and_counted() -> None:
    out = Exposition(samples_max=3)
    gauge = out.gauge("some_gauge", "")
    for number in range(5):
        gauge.add(number, label("n", number))
    assert gauge.left_out == 2
    (family,) = text_string_to_metric_families(out.text())
    assert len(family.samples) == 3


def test_the_pieces_of_a_large_text_are_small() -> None:
    out = Exposition()
    gauge = out.gauge("some_gauge", "")
    for number in range(10_000):
        gauge.add(number, label("n", number))
    assert max(map(len, out.chunks())) < 100_000
    assert b"".join(out.chunks()).count(b"\n") == 10_002
