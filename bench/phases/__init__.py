"""All phases by subject, in the order in which they run: on the two warm brokers, then on fresh ones."""

from bench.phases import (
    cluster,
    compaction,
    groups,
    latency,
    lifecycle,
    metrics,
    spark,
    throughput,
    transactions,
)
from bench.phases.model import Phase

SUBJECTS: dict[str, tuple[Phase, ...]] = {
    "broker": (*throughput.PHASES, *latency.PHASES, *lifecycle.PHASES),
    "groups": groups.PHASES,
    "transactions": transactions.PHASES,
    "compaction": compaction.PHASES,
    "cluster": cluster.PHASES,
    "metrics": metrics.PHASES,
    "spark": spark.PHASES,
}
PHASES: dict[str, Phase] = {
    phase.name: phase
    for phase in sorted(
        (phase for phases in SUBJECTS.values() for phase in phases), key=lambda phase: phase.fresh
    )
}
