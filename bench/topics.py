"""Topics of a phase: made through a stock admin client, and removed again together with their bytes on disk.

A phase must never start while an earlier phase's data still fills the page cache.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from bench.errors import BenchError
from bench.peers import Peer

_LEFTOVER_BYTES_MAX = 64 << 20


@contextmanager
def topic(peer: Peer, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> Iterator[str]:
    """A new topic whose leaders answer; afterwards it is gone, from the disk too."""
    create_topics(peer, [name], partitions, configs=configs)
    try:
        wait_for_leaders(peer, [name], partitions)
        yield name
    except BaseException:
        with contextlib.suppress(BenchError):  # the first error is the one to tell
            delete_topics(peer, [name], timeout_s=5.0)
        raise
    delete_topics(peer, [name])
    _wait_for_empty_disk(peer.data_dir)


def create_topics(
    peer: Peer,
    names: list[str],
    partitions: int,
    timeout_s: float = 60.0,
    configs: Mapping[str, str] | None = None,
    copies: int = 1,
) -> None:
    admin = _admin(peer)
    config = dict(configs or {})
    wanted = [
        NewTopic(name, num_partitions=partitions, replication_factor=copies, config=config) for name in names
    ]
    _wait("create", admin.create_topics(wanted, request_timeout=timeout_s), timeout_s)


def delete_topics(peer: Peer, names: list[str], timeout_s: float = 60.0) -> None:
    admin = _admin(peer)  # kept in a name: its futures fail when it is collected
    _wait("delete", admin.delete_topics(names, request_timeout=timeout_s), timeout_s)


def wait_for_leaders(peer: Peer, names: list[str], partitions: int, timeout_s: float = 60.0) -> None:
    """Metadata may name a leader that has not heard of it yet, so each is asked for an offset."""
    admin = _admin(peer)
    deadline = time.monotonic() + timeout_s
    # Topic by topic: asking for everything again and again would be a load of its own.
    for name in names:
        wanted = {TopicPartition(name, number): OffsetSpec.latest() for number in range(partitions)}
        while not _are_reachable(admin, wanted, deadline):
            time.sleep(0.02)


def set_config(peer: Peer, kind: ResourceType, name: str, setting: str, value: str) -> None:
    """Change a setting of a topic or of the broker while it runs."""
    admin = _admin(peer)
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    _wait("configure", admin.incremental_alter_configs([resource]), timeout_s=30.0)


def records_in(peer: Peer, name: str, partitions: int) -> int:
    """How many records a topic has to which nothing but plain records was written."""
    admin = _admin(peer)
    wanted = {TopicPartition(name, number): OffsetSpec.latest() for number in range(partitions)}
    listed = admin.list_offsets(wanted, request_timeout=30.0)
    _wait("count", listed, timeout_s=30.0)
    return sum(future.result().offset for future in listed.values())


def _are_reachable(admin: AdminClient, wanted: dict[TopicPartition, OffsetSpec], deadline: float) -> bool:
    try:
        _wait("reach", admin.list_offsets(wanted, request_timeout=30.0), timeout_s=30.0)
    except BenchError:
        if time.monotonic() > deadline:
            raise
        return False
    return True


def _wait(action: str, futures: Mapping[Any, Future[Any]], timeout_s: float) -> None:
    for name, future in futures.items():
        try:
            future.result(timeout=timeout_s)
        except (KafkaException, TimeoutError) as error:
            raise BenchError(f"cannot {action} {name}: {error}") from error


def _wait_for_empty_disk(data_dir: Path, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while _bytes_on_disk(data_dir) > _LEFTOVER_BYTES_MAX:
        if time.monotonic() > deadline:
            raise BenchError(f"the deleted topic still fills the disk after {timeout_s:.0f} s")
        time.sleep(0.1)


def _admin(peer: Peer) -> AdminClient:
    severe_only = 2  # it tells of its own clean-up otherwise
    address = {"bootstrap.servers": peer.bootstrap, "broker.address.family": "v4"}
    return AdminClient({**address, "log_level": severe_only})


def _bytes_on_disk(data_dir: Path) -> int:
    total = 0
    for folder, _, files in os.walk(data_dir):
        if os.path.basename(folder).startswith(("__consumer_offsets-", "__transaction_state-")):
            continue  # no phase's topics: they are there to stay
        for file in files:
            with contextlib.suppress(OSError):  # removed while we look, which is what we wait for
                # Blocks, not length: index files are preallocated with holes.
                total += os.stat(os.path.join(folder, file)).st_blocks * 512
    return total
