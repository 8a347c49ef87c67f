"""What a phase is, and what it is given to run with. Holds no measurement itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench import procfs
from bench.loads import Loader
from bench.pages import warm_pages
from bench.peers import Peer
from bench.stats import Metric
from bench.topics import topic

_WARM_BYTES = 1024**3  # more than any phase writes
PARTITIONS = 4


@dataclass(frozen=True)
class Sizes:
    """How much work a phase does. Nothing that is timed may write more than 1 GB: past that the page cache,
    not the broker, is measured on a small machine."""

    messages_1k: int = 700_000
    messages_100b: int = 6_000_000
    requests_seconds: int = 8
    e2e_messages: int = 10_000
    e2e_warmup: int = 1_000
    idle_connections: int = 5_000
    idle_messages_1k: int = 500_000
    many_topics: int = 100
    partitions_per_topic: int = 100
    settle_s: float = 3.0
    commits_seconds: int = 8
    group_members: int = 100
    group_partitions: int = 1_000
    rebalances: int = 5
    consume_rounds: int = 2
    idle_groups: int = 1_000
    idle_groups_seconds: float = 15.0
    transactions_seconds: int = 8
    txn_rounds: int = 2
    spark_messages_100b: int = 8_000_000
    spark_messages_1k: int = 600_000
    spark_rows_written: int = 1_500_000
    spark_micro_seconds: float = 6.0
    spark_memory_messages_1k: int = 10_000_000
    compaction_messages_1k: int = 2_000_000
    compaction_keys: int = 100_000


QUICK = Sizes(
    messages_1k=100_000,
    messages_100b=1_000_000,
    requests_seconds=2,
    e2e_messages=2_000,
    e2e_warmup=500,
    idle_connections=1_000,
    idle_messages_1k=200_000,
    many_topics=10,
    settle_s=1.0,
    commits_seconds=2,
    group_members=20,
    group_partitions=200,
    rebalances=2,
    consume_rounds=1,
    idle_groups=100,
    idle_groups_seconds=6.0,
    transactions_seconds=2,
    txn_rounds=1,
    spark_messages_100b=300_000,
    spark_messages_1k=50_000,
    spark_rows_written=100_000,
    spark_micro_seconds=2.0,
    spark_memory_messages_1k=500_000,
    compaction_messages_1k=200_000,
    compaction_keys=10_000,
)


@dataclass(frozen=True)
class Bench:
    """One measurement of one phase: the peer to measure, what loads it, and how much."""

    peer: Peer
    load: Loader
    sizes: Sizes

    def warm_pages(self, bytes_written: int = _WARM_BYTES) -> None:
        """To be called right before a load that writes: its pages are then warm, whatever ran before."""
        warm_pages(self.peer.data_dir.parent, bytes_written)


def warm_up_records(bench: Bench) -> None:
    """A round of every kind of load on records."""
    peer, load = bench.peer, bench.load
    with topic(peer, "warm-up", PARTITIONS) as name:
        load.produce(name, 100_000, 1024)
        load.produce(name, 1_000_000, 100)
        load.consume(name, PARTITIONS, 1_100_000, 100)
        load.requests(name, PARTITIONS, seconds=3)
    with topic(peer, "warm-up-e2e", 1) as name:
        load.end_to_end(name, rate_per_s=1_000, messages=1_000, warmup=0)


@dataclass(frozen=True)
class Phase:
    """`run` gives a value for every metric. With `fresh`, its peer is new and not yet started; else it has
    been warmed up with `warm_up`, again and again.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    run: Callable[[Bench], dict[str, float]]
    fresh: bool = False
    repeats_max: int | None = None
    warm_up: Callable[[Bench], None] = warm_up_records


@dataclass
class CpuUse:
    """The broker's CPU seconds inside a `cpu_of` block, filled in at its end."""

    seconds: float = 0.0


@contextmanager
def cpu_of(peer: Peer) -> Iterator[CpuUse]:
    use = CpuUse()
    before = procfs.cpu_seconds(peer.pid)
    yield use
    use.seconds = procfs.cpu_seconds(peer.pid) - before
