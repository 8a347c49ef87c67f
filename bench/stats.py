"""Medians, spread, ratios and targets: what is done with the measured values. Pure functions, no I/O."""

from dataclasses import dataclass
from statistics import median
from typing import Literal

MAINSTEM = "mainstem"
KAFKA = "kafka"
EARLIER = "earlier"  # Mainstem as another checkout has it

TargetKind = Literal["ratio_min", "ratio_max", "value_min", "value_max", "each_min", "each_max"]


@dataclass(frozen=True)
class Target:
    """What Mainstem must reach, alone (`value_*`) or against Kafka's median of the same run (`ratio_*`); or
    what has to be reached on each broker (`each_*`), where it is not the broker that is judged."""

    kind: TargetKind
    bound: float

    def text(self, unit: str) -> str:
        sign = ">=" if self.kind.endswith("_min") else "<="
        suffix = "x" if self.kind.startswith("ratio") else f" {unit}".rstrip()
        return f"{sign} {self.bound:g}{suffix}"

    def is_met(self, value: float, ratio: float | None, kafka: float | None = None) -> bool | None:
        """None where it cannot be told: no Kafka in the run."""
        judged = [ratio if self.kind.startswith("ratio") else value]
        if self.kind.startswith("each"):
            judged.append(kafka)
        known = [number for number in judged if number is not None]
        if len(known) < len(judged):
            return None
        is_least = self.kind.endswith("_min")
        return min(known) >= self.bound if is_least else max(known) <= self.bound


@dataclass(frozen=True)
class Metric:
    """One number that a phase measures, and what is expected of it: all of the targets, or any of them."""

    name: str
    unit: str
    targets: tuple[Target, ...] = ()
    any_target: bool = False

    def target_text(self) -> str:
        return (" or " if self.any_target else ", ").join(target.text(self.unit) for target in self.targets)

    def is_met(self, value: float, ratio: float | None, kafka: float | None = None) -> bool | None:
        """None where there is no target, or it cannot be told."""
        judged = [target.is_met(value, ratio, kafka) for target in self.targets]
        if self.any_target and True in judged:
            return True
        return None if not judged or None in judged else all(judged)


@dataclass(frozen=True)
class Summary:
    """The repeated measurements of one number on one peer."""

    median: float
    low: float
    high: float
    count: int


def summarise(values: list[float]) -> Summary | None:
    """None for no values: a peer that was not run or failed throughout."""
    if not values:
        return None
    return Summary(median(values), min(values), max(values), len(values))


def ratio(mainstem: Summary | None, kafka: Summary | None) -> float | None:
    """Mainstem's median as a multiple of Kafka's."""
    if mainstem is None or kafka is None or kafka.median == 0:
        return None
    return mainstem.median / kafka.median
