"""Runs the load generators against a broker and reads what they print. Every run is bounded by a time-out.

The generators are C programs, so that the broker and not the client is measured.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError
from bench.peers import Peer
from bench.tools import Tools

_TIMEOUT_S = 180.0
_REQUESTS_MAX = 5_000_000  # a bound for the generator's memory; the time ends it first

_PRODUCED = re.compile(r"(\d+) delivered \(offset -?\d+, (\d+) failed\) in (\d+)ms")
_CONSUMED = re.compile(r"% (\d+) messages \((\d+) bytes\) consumed in (\d+)ms")


@dataclass(frozen=True)
class Throughput:
    messages: int
    size_bytes: int
    seconds: float

    @property
    def messages_per_s(self) -> float:
        return self.messages / self.seconds

    @property
    def megabytes_per_s(self) -> float:
        return self.messages_per_s * self.size_bytes / 1e6

    @property
    def gigabytes(self) -> float:
        return self.messages * self.size_bytes / 1e9


@dataclass
class IdleConnections:
    """Filled in when the holder has ended."""

    still_open: int = 0
    opening_seconds: float = 0.0


@dataclass
class Paced:
    """What a producer at a fixed rate has seen; filled in when it has ended."""

    p50_ms: float = 0.0
    p99_ms: float = 0.0
    silence_ms: float = 0.0
    failed: int = 0


@dataclass(frozen=True)
class Loader:
    """The load generators, pointed at one broker."""

    tools: Tools
    peer: Peer

    def produce(
        self, topic: str, messages: int, size_bytes: int, codec: str = "none", acks: int = 1
    ) -> Throughput:
        """As fast as librdkafka can, with its own partitioner; batches of up to a megabyte."""
        load = ["-P", "-s", str(size_bytes), "-c", str(messages), "-a", str(acks), "-z", codec]
        load += ["-X", "linger.ms=5", "-X", "batch.num.messages=10000"]
        load += ["-X", "queue.buffering.max.messages=500000"]
        return parse_produced(self._librdkafka(topic, load), messages, size_bytes)

    def consume(self, topic: str, partitions: int, messages: int, size_bytes: int) -> Throughput:
        """From the start of every partition until so many messages came."""
        load = ["-C", "-o", "beginning", "-c", str(messages)]
        for partition in range(partitions):
            load += ["-p", str(partition)]
        # When its queue is full the client pauses; the default second would measure the pause.
        load += ["-X", "fetch.queue.backoff.ms=1"]
        return parse_consumed(self._librdkafka(topic, load), messages, size_bytes)

    def fetch(
        self, topic: str, partitions: int, messages: int, size_bytes: int, ports: Sequence[int] = ()
    ) -> Throughput:
        """The same by a reader that does not unpack the records, and so never is what takes the time. `ports`
        are those of the partitions' leaders, where they differ.
        """
        load = ["--partitions", str(partitions), "--messages", str(messages), *_ports(ports)]
        return _whole(self._own(self.tools.fetches, topic, load), messages, size_bytes)

    def bulk(
        self, topic: str, partitions: int, messages: int, size_bytes: int, ports: Sequence[int] = ()
    ) -> Throughput:
        """Batches of a megabyte that were made before the clock runs, so that the broker is measured."""
        load = ["--partitions", str(partitions), "--messages", str(messages), "--size", str(size_bytes)]
        load += _ports(ports)
        done = self._own(self.tools.bulk, topic, load)
        return Throughput(int(done["messages"]), size_bytes, done["seconds"])

    def requests(
        self, topic: str, partitions: int, seconds: int, count: int = _REQUESTS_MAX
    ) -> dict[str, float]:
        """One 100 B record per request over 50 connections, one in flight on each."""
        load = ["--connections", "50", "--depth", "1", "--size", "100", "--partitions", str(partitions)]
        load += ["--count", str(count), "--seconds", str(seconds)]
        return self._own(self.tools.requests, topic, load)

    def commits(self, topic: str, partitions: int, group: str, groups: int, seconds: int) -> dict[str, float]:
        """One offset of one partition per request over 50 connections, one in flight on each."""
        load = ["--connections", "50", "--depth", "1", "--partitions", str(partitions)]
        load += ["--group", group, "--groups", str(groups)]
        load += ["--count", str(_REQUESTS_MAX), "--seconds", str(seconds)]
        return self._own(self.tools.commits, topic, load)

    def transactions(
        self, topic: str, partitions: int, group: str, producers: int, seconds: int
    ) -> dict[str, float]:
        """Ten records of 100 B over the partitions and an offset in each; a producer makes one at a time."""
        load = ["--partitions", str(partitions), "--group", group, "--producers", str(producers)]
        load += ["--records", "10", "--size", "100", "--seconds", str(seconds)]
        return self._own(self.tools.transactions, topic, load)

    def produce_idempotent(
        self, topic: str, messages: int, size_bytes: int, transaction_ms: int
    ) -> Throughput:
        """As fast as librdkafka can, in transactions of this length, or with 0 in none."""
        load = ["--messages", str(messages), "--size", str(size_bytes)]
        load += ["--transaction-ms", str(transaction_ms)]
        done = self._own(self.tools.txn_produce, topic, load)
        return Throughput(messages, size_bytes, done["seconds"])

    def consume_side_by_side(
        self,
        topic: str,
        consumers: int,
        messages: int,
        size_bytes: int,
        group: str | None,
        isolation: str = "read_committed",
    ) -> Throughput:
        """One partition to a consumer, as a member of the group or taken by itself; all from the start."""
        load = ["--consumers", str(consumers), "--messages", str(messages), "--group", group or ""]
        load += ["--isolation", isolation]
        return _whole(self._own(self.tools.consumers, topic, load), messages, size_bytes)

    def end_to_end(self, topic: str, rate_per_s: int, messages: int, warmup: int) -> dict[str, float]:
        """acks=all, no linger, and a consumer that long-polls on a connection of its own."""
        load = ["--rate", str(rate_per_s), "--count", str(messages), "--warmup", str(warmup)]
        return self._own(self.tools.e2e, topic, load)

    @contextmanager
    def paced(self, topic: str, seconds: int, rate_per_s: int = 1_000, acks: int = -1) -> Iterator[Paced]:
        """A producer at a fixed rate: the block is entered when it is warm, and left when it has ended."""
        done = Paced()
        load = ["--seconds", str(seconds), "--rate", str(rate_per_s), "--acks", str(acks)]
        command = [str(self.tools.paced), "--port", str(self.peer.port), "--topic", topic, *load]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe) as producer:
            assert producer.stdout is not None
            try:
                if not producer.stdout.readline().startswith(b"paced"):
                    _, errors = producer.communicate(timeout=10)
                    raise BenchError(f"the paced producer: {errors.decode(errors='replace').strip()}")
                yield done
                output, errors = producer.communicate(timeout=_TIMEOUT_S)
                if producer.returncode != 0:
                    raise BenchError(f"the paced producer: {errors.decode(errors='replace').strip()}")
                fields = json.loads(output)
                done.silence_ms, done.p99_ms = fields["silence_ms"], fields["p99_ms"]
                done.p50_ms, done.failed = fields["p50_ms"], fields["failed"]
            finally:
                if producer.poll() is None:
                    producer.kill()

    @contextmanager
    def idle_connections(self, count: int) -> Iterator[IdleConnections]:
        """So many connections are open and silent inside the block."""
        held = IdleConnections()
        command = [str(self.tools.idle), "--port", str(self.peer.port), "--connections", str(count)]
        pipe = subprocess.PIPE
        with subprocess.Popen([*command, "--seconds", "300"], stdin=pipe, stdout=pipe, stderr=pipe) as holder:
            assert holder.stdout is not None
            try:
                if not holder.stdout.readline().startswith(b"holding"):
                    _, errors = holder.communicate(timeout=10)
                    raise BenchError(f"idle connections: {errors.decode(errors='replace').strip()}")
                yield held
                output, _ = holder.communicate(timeout=60)
                fields = json.loads(output)
                held.still_open, held.opening_seconds = fields["still_open"], fields["opening_seconds"]
            finally:
                if holder.poll() is None:
                    holder.kill()

    def _librdkafka(self, topic: str, load: list[str]) -> str:
        where = ["-t", topic, "-b", self.peer.bootstrap, "-X", "broker.address.family=v4"]
        return _run([str(self.tools.rdkafka), *where, *load])

    def _own(self, program: Path, topic: str, load: list[str]) -> dict[str, float]:
        output = _run([str(program), "--port", str(self.peer.port), "--topic", topic, *load])
        fields: dict[str, float] = json.loads(output)
        return fields


def _ports(ports: Sequence[int]) -> list[str]:
    return ["--ports", ",".join(map(str, ports))] if ports else []


def _whole(done: dict[str, float], messages: int, size_bytes: int) -> Throughput:
    """What a reader of ours did, after a look whether it got everything."""
    if done["bytes"] < messages * size_bytes:
        raise BenchError(f"only {done['bytes']} bytes were read of {messages} messages")
    return Throughput(messages, size_bytes, done["seconds"])


def parse_produced(output: str, messages: int, size_bytes: int) -> Throughput:
    found = _PRODUCED.findall(output)
    if not found:
        raise BenchError(f"the producer printed no summary: {output[-300:]!r}")
    delivered, failed, taken_ms = (int(field) for field in found[-1])
    if delivered != messages or failed:
        raise BenchError(f"only {delivered} of {messages} messages were delivered: {output[-300:]!r}")
    return Throughput(delivered, size_bytes, max(1, taken_ms) / 1000)


def parse_consumed(output: str, messages: int, size_bytes: int) -> Throughput:
    found = _CONSUMED.findall(output)
    if not found:
        raise BenchError(f"the consumer printed no summary: {output[-300:]!r}")
    consumed, consumed_bytes, taken_ms = (int(field) for field in found[-1])
    if consumed < messages or consumed_bytes < messages * size_bytes:
        raise BenchError(f"only {consumed} of {messages} messages were consumed: {output[-300:]!r}")
    return Throughput(consumed, size_bytes, max(1, taken_ms) / 1000)


def _run(command: list[str]) -> str:
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{name} did not end within {_TIMEOUT_S:.0f} s") from error
    if done.returncode != 0:
        raise BenchError(f"{name} failed: {(done.stderr + done.stdout).strip()[-500:]}")
    return done.stdout
