"""Prometheus' text format, version 0.0.4: families of samples, each with its help, its type and its labels.

Labels are given as text that is made once and used for many samples: most of the cost of a scrape is here.
"""

from collections.abc import Iterator
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LINES_PER_CHUNK: Final = 1000
_LABEL_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def label(name: str, value: object) -> str:
    """One label as it stands between the braces. A name in `value` that is no Unicode is made into some."""
    text = str(value).translate(_LABEL_ESCAPES)
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return f'{name}="{text}"'


def sample_value(value: float) -> str:
    """A number as Prometheus reads it; whole numbers without a fraction."""
    if type(value) is int:
        return str(value)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


class Family:
    """All samples of one name. With more than `samples_max` of them the rest is counted and left out."""

    __slots__ = ("_samples_max", "help", "kind", "left_out", "lines", "name")

    def __init__(self, name: str, kind: str, help_text: str, samples_max: int) -> None:
        self.name = name
        self.kind = kind
        self.help = help_text
        self.lines: list[str] = []
        self.left_out = 0
        self._samples_max = samples_max

    def add(self, value: float, labels: str = "") -> None:
        """One sample; `labels` is what `label` gives, with commas in between."""
        lines = self.lines
        if len(lines) >= self._samples_max:
            self.left_out += 1
            return
        number = value if type(value) is int else sample_value(value)  # nearly all are whole
        lines.append(f"{self.name}{{{labels}}} {number}\n" if labels else f"{self.name} {number}\n")


class Exposition:
    """The families of one scrape, in the order in which they are begun."""

    def __init__(self, samples_max: int = 1_000_000) -> None:
        self._samples_max = samples_max
        self.families: dict[str, Family] = {}

    def counter(self, name: str, help_text: str) -> Family:
        return self._family(name, "counter", help_text)

    def gauge(self, name: str, help_text: str) -> Family:
        return self._family(name, "gauge", help_text)

    def histogram(self, name: str, help_text: str) -> Family:
        return self._family(name, "histogram", help_text)

    def _family(self, name: str, kind: str, help_text: str) -> Family:
        assert name not in self.families, f"{name} is begun twice"
        family = self.families[name] = Family(name, kind, help_text, self._samples_max)
        return family

    def chunks(self) -> Iterator[bytes]:
        """The text, in pieces that are short enough to do something else in between."""
        for family in self.families.values():
            text = family.help.replace("\\", r"\\").replace("\n", r"\n")
            yield f"# HELP {family.name} {text}\n# TYPE {family.name} {family.kind}\n".encode()
            lines = family.lines
            for first in range(0, len(lines), _LINES_PER_CHUNK):
                yield "".join(lines[first : first + _LINES_PER_CHUNK]).encode()

    def text(self) -> str:
        return b"".join(self.chunks()).decode()
