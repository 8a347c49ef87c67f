"""All phases in the order in which they run: those on the two warm brokers, then those on fresh ones."""

from bench.phases import groups, latency, lifecycle, throughput, transactions
from bench.phases.model import Phase

PHASES: dict[str, Phase] = {
    phase.name: phase
    for phase in (
        *throughput.PHASES,
        *latency.PHASES,
        *groups.PHASES,
        *transactions.PHASES,
        *lifecycle.PHASES,
    )
}
