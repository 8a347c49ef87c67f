"""Times in buckets of powers of two, because the place of a time is then one shift and one bit count.

The buckets end at 2**13 ns (8.2 us), 2**14 ns and so on up to 2**36 ns (69 s).
"""

from typing import Final

from mainstem.metrics.exposition import Family, sample_value

_SHIFT: Final = 13
_BUCKETS_SHOWN: Final = 24
_PLACES: Final = 64  # every number of nanoseconds has one, so that nothing need be compared
_EDGES: Final = tuple(sample_value(2 ** (_SHIFT + place) / 1e9) for place in range(_BUCKETS_SHOWN))


class TimeHistogram:
    """How often something took how long."""

    __slots__ = ("counts", "total_ns")

    def __init__(self) -> None:
        self.counts = [0] * _PLACES
        self.total_ns = 0

    @property
    def count(self) -> int:
        return sum(self.counts)

    def observe_ns(self, taken_ns: int, times: int = 1) -> None:
        """Count a time, once or several times. One that is negative counts as none at all."""
        if taken_ns < 0:
            taken_ns = 0
        self.total_ns += taken_ns * times
        self.counts[(taken_ns >> _SHIFT).bit_length()] += times


def add_histogram(family: Family, histogram: TimeHistogram, labels: str = "") -> None:
    """The samples of one histogram, in seconds."""
    name = family.name
    before = f"{labels}," if labels else ""
    after = f"{{{labels}}}" if labels else ""
    up_to = 0
    for edge, count in zip(_EDGES, histogram.counts, strict=False):
        up_to += count
        family.lines.append(f'{name}_bucket{{{before}le="{edge}"}} {up_to}\n')
    family.lines.append(f'{name}_bucket{{{before}le="+Inf"}} {histogram.count}\n')
    family.lines.append(f"{name}_sum{after} {sample_value(histogram.total_ns / 1e9)}\n")
    family.lines.append(f"{name}_count{after} {histogram.count}\n")
