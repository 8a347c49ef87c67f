"""Three nodes with every partition on all of them: throughput, latencies, what a loss costs, and idling.

Each phase starts clusters of its own, warms them up, and counts the CPU of all nodes together.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from bench.clusters import NODES, PeerCluster
from bench.errors import BenchError
from bench.loads import Loader
from bench.pages import warm_pages
from bench.peers import START_TIMEOUT_S, Kafka, Peer
from bench.phases.model import PARTITIONS, Bench, Phase
from bench.stats import Metric, Target
from bench.topics import create_topics, wait_for_leaders
from bench.wire import leader_ports
from mainstem.records.record import Record, build_batch
from mainstem.wire import Cluster as Client
from mainstem.wire import from_kafka_options

_WARM_BYTES = 1024**3
_E2E_RATE_PER_S = 500
_SILENCE_SECONDS = 15
_KILL_AFTER_S = 2.0
_ROLLING_SECONDS = 90
_IDLE_TOPICS = 10
_IDLE_PARTITIONS = 100
_TOPICS_PER_REQUEST = 10
_CREATE_TIMEOUT_S = 600.0


class _Nodes:
    """A running cluster, and loads on it."""

    def __init__(self, bench: Bench, cluster: PeerCluster) -> None:
        self.bench = bench
        self.cluster = cluster
        self.load = Loader(bench.load.tools, cluster.first)

    def at(self, node: int) -> Loader:
        """Loads that speak with one node."""
        return Loader(self.bench.load.tools, self.cluster.nodes[node])

    def make_topic(self, name: str, partitions: int) -> str:
        create_topics(self.cluster.first, [name], partitions, copies=NODES)
        wait_for_leaders(self.cluster.first, [name], partitions)
        return name

    def warm_up(self) -> None:
        """A JVM compiles what runs often."""
        sizes = self.bench.sizes
        name = self.make_topic("warm-up", PARTITIONS)
        for _ in range(2):
            self.load.produce(name, sizes.messages_1k // 4, 1024, acks=-1)
            self.load.produce(name, sizes.messages_100b // 6, 100, acks=-1)
        with self.load.paced(name, seconds=max(1, sizes.requests_seconds // 2)):
            pass


@contextmanager
def _running(bench: Bench, *, warm: bool = True) -> Iterator[_Nodes]:
    cluster = PeerCluster(bench.peer)
    try:
        cluster.start()
        nodes = _Nodes(bench, cluster)
        if warm:
            nodes.warm_up()
        yield nodes
    finally:
        cluster.remove()


def _produce(bench: Bench, size_bytes: int) -> dict[str, float]:
    sizes = bench.sizes
    messages = (sizes.messages_1k if size_bytes == 1024 else sizes.messages_100b) // 2
    with _running(bench) as nodes:
        name = nodes.make_topic(f"produce-{size_bytes}", PARTITIONS)
        warm_pages(nodes.cluster.folder, _WARM_BYTES)
        before = nodes.cluster.cpu_seconds()
        done = nodes.load.produce(name, messages, size_bytes, acks=-1)
        cpu_seconds = nodes.cluster.cpu_seconds() - before
        return {
            "mb_per_s": done.megabytes_per_s,
            "cpu_s_per_gb": cpu_seconds / done.gigabytes,
            "rss_mb": nodes.cluster.resident_mb(),
        }


def _end_to_end(bench: Bench) -> dict[str, float]:
    sizes = bench.sizes
    with _running(bench) as nodes:
        name = nodes.make_topic("end-to-end", 1)
        leader = nodes.at(nodes.cluster.leader_of(name, 0))
        done = leader.end_to_end(name, _E2E_RATE_PER_S, sizes.e2e_messages, sizes.e2e_warmup)
        return {key: done[key] for key in ("p50_ms", "p99_ms", "p999_ms")}


def _acks(bench: Bench) -> dict[str, float]:
    found = {}
    with _running(bench) as nodes:
        for label, acks in (("acks_0", 0), ("acks_1", 1), ("acks_all", -1)):
            name = nodes.make_topic(label.replace("_", "-"), PARTITIONS)
            with nodes.load.paced(name, seconds=bench.sizes.requests_seconds, acks=acks) as done:
                pass
            found[f"{label}_p99_ms"] = done.p99_ms
    return found


def _kill_leader(cluster: PeerCluster, topic: str) -> list[int]:
    return [cluster.leader_of(topic, 0)]


def _kill_controller(cluster: PeerCluster, topic: str) -> list[int]:
    """One that does not lead the partition, where that can be: its loss alone is to be seen."""
    return [cluster.controller()]


def _silence(bench: Bench, chosen: Callable[[PeerCluster, str], list[int]], *, both: bool) -> float:
    """Of a producer with acks=all to one partition, over kill -9. With `both`, one node is leader and
    controller; without, it is not, as far as a topic can be found of which that is true.
    """
    with _running(bench) as nodes:
        cluster = nodes.cluster
        controller = cluster.controller()
        for number in range(2 * NODES):
            name = nodes.make_topic(f"silence-{number}", 1)
            if (cluster.leader_of(name, 0) == controller) is both:
                break
        else:
            raise BenchError("no topic has the leader that is wanted")
        with nodes.load.paced(name, seconds=_SILENCE_SECONDS) as done:
            time.sleep(_KILL_AFTER_S)
            for node in chosen(cluster, name):
                cluster.nodes[node].kill()
        if done.failed:
            raise BenchError(f"{done.failed} records were refused")
        return done.silence_ms / 1000


def _kills(bench: Bench) -> dict[str, float]:
    return {
        "leader_s": _silence(bench, _kill_leader, both=False),
        "controller_s": _silence(bench, _kill_controller, both=False),
        "both_s": _silence(bench, _kill_leader, both=True),
    }


def _rolling_restart(bench: Bench) -> dict[str, float]:
    with _running(bench) as nodes:
        cluster = nodes.cluster
        name = nodes.make_topic("rolling", PARTITIONS)
        started = time.monotonic()
        with nodes.load.paced(name, seconds=_ROLLING_SECONDS) as done:
            for peer in cluster.nodes.values():
                peer.stop()
                peer.start()
                cluster.await_nodes(list(cluster.nodes), time.monotonic() + START_TIMEOUT_S)
                _await_in_sync(cluster.first, [name])
            taken_s = time.monotonic() - started
            if taken_s > _ROLLING_SECONDS:
                raise BenchError(f"the restarts took {taken_s:.0f} s, longer than the load")
        return {"silence_s": done.silence_ms / 1000, "refused": float(done.failed), "restart_s": taken_s}


def _idle(bench: Bench) -> dict[str, float]:
    with _running(bench, warm=False) as nodes:
        names = [f"idle-{number}" for number in range(_IDLE_TOPICS)]
        create_topics(nodes.cluster.first, names, _IDLE_PARTITIONS, _CREATE_TIMEOUT_S, copies=NODES)
        wait_for_leaders(nodes.cluster.first, names, _IDLE_PARTITIONS)
        time.sleep(10 * bench.sizes.settle_s)
        before = nodes.cluster.cpu_seconds()
        time.sleep(bench.sizes.idle_groups_seconds)
        used = nodes.cluster.cpu_seconds() - before
        return {"cpu_percent": 100 * used / bench.sizes.idle_groups_seconds}


def _start(bench: Bench) -> dict[str, float]:
    """From nothing: to the first acknowledged record with three copies, and what idling then takes."""
    cluster = PeerCluster(bench.peer)
    try:
        for peer in cluster.nodes.values():
            peer.prepare(peer.port)
        started = time.monotonic()
        for peer in cluster.nodes.values():
            peer.spawn()
        cluster.await_nodes(list(cluster.nodes), started + START_TIMEOUT_S)
        nodes = _Nodes(bench, cluster)
        nodes.load.produce(nodes.make_topic("first", 1), 1, 100, acks=-1)
        start_s = time.monotonic() - started
        time.sleep(bench.sizes.settle_s)
        return {"start_s": start_s, "idle_mb": cluster.resident_mb()}
    finally:
        cluster.remove()


def _many_partitions(bench: Bench) -> dict[str, float]:
    sizes = bench.sizes
    names = [f"many-{number:04d}" for number in range(sizes.many_topics)]
    with _running(bench, warm=False) as nodes:
        cluster, each = nodes.cluster, sizes.partitions_per_topic
        started = time.monotonic()
        for first in range(0, len(names), _TOPICS_PER_REQUEST):
            some = names[first : first + _TOPICS_PER_REQUEST]
            create_topics(cluster.first, some, each, _CREATE_TIMEOUT_S, copies=NODES)
        _write_to_each(cluster.first, names, each)
        create_s = time.monotonic() - started
        started = time.monotonic()
        cluster.nodes[NODES].kill()
        _await_led(cluster.first, names, without=NODES)
        led_s = time.monotonic() - started
        started = time.monotonic()
        cluster.nodes[NODES].start()
        _await_in_sync(cluster.first, names)
        return {"create_s": create_s, "led_s": led_s, "in_sync_s": time.monotonic() - started}


def _two_nodes(bench: Bench) -> dict[str, float]:
    """Mainstem on two nodes, Apache Kafka on one, which uses all cores by itself: writers and readers on bare
    sockets, one for each of four partitions with one copy.
    """
    cluster = PeerCluster(bench.peer, nodes=1 if isinstance(bench.peer, Kafka) else 2)
    name, messages = "two-nodes", bench.sizes.messages_1k
    try:
        cluster.start()
        load = Loader(bench.load.tools, cluster.first)
        create_topics(cluster.first, [name, "warm-up"], PARTITIONS)
        wait_for_leaders(cluster.first, [name, "warm-up"], PARTITIONS)
        for topic, rounds in (("warm-up", 3), (name, 1)):
            ports = [port for _, port in sorted(leader_ports(cluster.first.port, topic).items())]
            warm_pages(cluster.folder, _WARM_BYTES)
            for _ in range(rounds):
                written = load.bulk(topic, PARTITIONS, messages, 1024, ports)
                read = load.fetch(topic, PARTITIONS, messages * 9 // 10, 1024, ports)
        return {"write_mb_per_s": written.megabytes_per_s, "read_mb_per_s": read.megabytes_per_s}
    finally:
        cluster.remove()


def _write_to_each(peer: Peer, names: list[str], partitions: int) -> None:
    """A record to each partition, acknowledged by all of its replicas."""
    batch = build_batch([Record(0, round(time.time() * 1000), None, bytes(100))])
    with Client(from_kafka_options({"bootstrap.servers": peer.bootstrap})) as client:
        for name in names:
            client.produce({(name, index): [batch] for index in range(partitions)}, acks=-1)


def _await_led(peer: Peer, names: list[str], without: int) -> None:
    _await(peer, names, lambda leader, isr, replicas: leader >= 0 and leader != without)


def _await_in_sync(peer: Peer, names: list[str]) -> None:
    _await(peer, names, lambda leader, isr, replicas: leader >= 0 and set(isr) == set(replicas))


def _await(
    peer: Peer, names: list[str], holds: Callable[[int, tuple[int, ...], tuple[int, ...]], bool]
) -> None:
    """Until this is true of every partition."""
    deadline = time.monotonic() + START_TIMEOUT_S
    missing = list(names)
    with Client(from_kafka_options({"bootstrap.servers": peer.bootstrap})) as client:
        while missing:
            with suppress(KeyError):
                found = client.metadata(missing)
                missing = [
                    name
                    for name in missing
                    if not all(
                        holds(part.leader, part.isr, part.replicas)
                        for part in found[name].partitions.values()
                    )
                ]
            if time.monotonic() > deadline:
                raise BenchError(f"waited in vain for {missing[:3]}")
            time.sleep(0.05)


_HALF = Target("ratio_max", 0.5)

PHASES = (
    Phase(
        "cluster_produce_1k",
        "produce 1 KB, rf=3, acks=all, 4 partitions",
        (
            Metric("mb_per_s", "MB/s", (Target("ratio_min", 1.5),)),
            Metric("cpu_s_per_gb", "CPU s/GB", (Target("ratio_max", 0.5),)),
            Metric("rss_mb", "MB"),
        ),
        lambda bench: _produce(bench, 1024),
        fresh=True,
        repeats_max=3,
    ),
    Phase(
        "cluster_produce_100b",
        "produce 100 B, rf=3, acks=all, 4 partitions",
        (
            Metric("mb_per_s", "MB/s", (Target("ratio_min", 1.2),)),
            Metric("cpu_s_per_gb", "CPU s/GB", (Target("ratio_max", 0.5),)),
            Metric("rss_mb", "MB"),
        ),
        lambda bench: _produce(bench, 100),
        fresh=True,
        repeats_max=3,
    ),
    Phase(
        "cluster_e2e",
        "end to end at 500/s, rf=3, acks=all",
        (
            Metric("p50_ms", "ms", (Target("ratio_max", 1.0),)),
            Metric("p99_ms", "ms", (Target("ratio_max", 0.5),)),
            Metric("p999_ms", "ms"),
        ),
        _end_to_end,
        fresh=True,
        repeats_max=3,
    ),
    Phase(
        "cluster_acks",
        "a producer at 1,000/s, rf=3",
        (
            Metric("acks_0_p99_ms", "ms", (Target("value_max", 1.0), _HALF), any_target=True),
            Metric("acks_1_p99_ms", "ms", (Target("value_max", 2.0), _HALF), any_target=True),
            Metric("acks_all_p99_ms", "ms", (Target("value_max", 5.0), _HALF), any_target=True),
        ),
        _acks,
        fresh=True,
        repeats_max=3,
    ),
    Phase(
        "cluster_kills",
        "kill -9: longest silence of an acks=all producer",
        tuple(
            Metric(name, "s", (Target("value_max", 1.0),)) for name in ("leader_s", "controller_s", "both_s")
        ),
        _kills,
        fresh=True,
        repeats_max=3,
    ),
    Phase(
        "cluster_rolling",
        "rolling restart of three nodes under an acks=all producer",
        (
            Metric("silence_s", "s", (Target("value_max", 0.3),)),
            Metric("refused", "records", (Target("value_max", 0.0),)),
            Metric("restart_s", "s"),
        ),
        _rolling_restart,
        fresh=True,
        repeats_max=2,
    ),
    Phase(
        "cluster_idle",
        "three nodes idle with 1,000 partitions, rf=3",
        (Metric("cpu_percent", "% CPU", (Target("value_max", 3.0),)),),
        _idle,
        fresh=True,
        repeats_max=2,
    ),
    Phase(
        "cluster_start",
        "start of three nodes to the first record with rf=3; memory of all, idle",
        (
            Metric("start_s", "s", (Target("value_max", 2.0),)),
            Metric("idle_mb", "MB", (Target("value_max", 150.0),)),
        ),
        _start,
        fresh=True,
        repeats_max=3,
    ),
    Phase(
        "cluster_two_nodes",
        "two nodes of Mainstem beside one of Apache Kafka on the same cores: four writers, then four readers",
        (
            Metric("write_mb_per_s", "MB/s", (Target("ratio_min", 1.0),)),
            Metric("read_mb_per_s", "MB/s", (Target("ratio_min", 1.0),)),
        ),
        _two_nodes,
        fresh=True,
        repeats_max=3,
    ),
    Phase(
        "cluster_partitions_10k",
        "10,000 partitions, rf=3: until all took a record, until all are led, until all are in sync",
        (
            Metric("create_s", "s", (Target("ratio_max", 0.5),)),
            Metric("led_s", "s", (Target("ratio_max", 0.5), Target("value_max", 2.0))),
            Metric("in_sync_s", "s", (Target("ratio_max", 0.5),)),
        ),
        _many_partitions,
        fresh=True,
        repeats_max=1,
    ),
)
