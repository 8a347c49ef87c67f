"""Topics of a phase: made through a stock admin client, and removed again together with their bytes on disk.

A phase must never start while an earlier phase's data still fills the page cache.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench.errors import BenchError
from bench.peers import Peer
from bench.wire import wait_for_metadata

_LEFTOVER_BYTES_MAX = 64 << 20


def create_topics(peer: Peer, names: list[str], partitions: int, timeout_s: float = 60.0) -> None:
    admin = _admin(peer)
    wanted = [NewTopic(name, num_partitions=partitions, replication_factor=1) for name in names]
    for future in admin.create_topics(
        wanted, operation_timeout=timeout_s, request_timeout=timeout_s
    ).values():
        future.result(timeout=timeout_s)


@contextmanager
def topic(peer: Peer, name: str, partitions: int) -> Iterator[str]:
    """A new topic whose partitions have leaders; afterwards it is gone, from the disk too."""
    create_topics(peer, [name], partitions)
    try:
        wait_for_metadata(peer.port, time.monotonic() + 30, partitions=partitions)
        yield name
    finally:
        delete_topics(peer, [name])
        wait_for_empty_disk(peer.data_dir)


def delete_topics(peer: Peer, names: list[str], timeout_s: float = 60.0) -> None:
    futures = _admin(peer).delete_topics(names, operation_timeout=timeout_s, request_timeout=timeout_s)
    for future in futures.values():
        future.result(timeout=timeout_s)


def wait_for_empty_disk(data_dir: Path, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while _bytes_on_disk(data_dir) > _LEFTOVER_BYTES_MAX:
        if time.monotonic() > deadline:
            raise BenchError(f"the deleted topic still fills the disk after {timeout_s:.0f} s")
        time.sleep(0.1)


def _admin(peer: Peer) -> AdminClient:
    return AdminClient({"bootstrap.servers": peer.bootstrap, "broker.address.family": "v4"})


def _bytes_on_disk(data_dir: Path) -> int:
    total = 0
    for file in data_dir.rglob("*"):
        try:
            # Blocks, not length: index files are preallocated with holes.
            total += file.stat().st_blocks * 512
        except OSError:
            continue  # removed while we look, which is what we wait for
    return total
