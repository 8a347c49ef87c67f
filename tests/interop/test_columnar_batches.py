"""Batches that are built from columns are taken by brokers and read by clients, and the other way round."""

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from mainstem.records.columnar import decode, encode
from mainstem.records.columnar.decode import HEADERS_TYPE
from mainstem.wire import Cluster, from_kafka_options
from tests.support.clients import READERS, WRITERS, Message
from tests.support.target import Target

_NOW_MS = int(time.time() * 1000)
_CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
_MESSAGES = [
    Message(
        None if number % 7 == 3 else b"value %d " % number * (number % 50),
        None if number % 5 == 1 else b"key %d" % number,
        (("first", b"%d" % number), ("none", None)) if number % 3 == 0 else (),
        _NOW_MS + number % 100,
    )
    for number in range(500)
]
# kafka-python sends no header without a value, and nothing without key and value.
_WRITTEN = [
    replace(message, headers=message.headers[:1]) for message in _MESSAGES if message.key or message.value
]


def _cluster(target: Target) -> Cluster:
    return Cluster(from_kafka_options({"bootstrap.servers": target.bootstrap_servers}))


@pytest.mark.parametrize("codec", _CODECS)
def test_clients_read_what_is_built_from_columns(target: Target, topic: str, codec: str) -> None:
    headers = [[{"key": name, "value": value} for name, value in message.headers] for message in _MESSAGES]
    batches = encode(
        pa.array([message.key for message in _MESSAGES], pa.binary()),
        pa.array([message.value for message in _MESSAGES], pa.binary()),
        pa.array(headers, HEADERS_TYPE),
        pa.array([message.timestamp_ms for message in _MESSAGES], pa.int64()),
        np.zeros(len(_MESSAGES), np.int32),
        codec=codec,
        batch_bytes=20_000,
    )
    assert len(batches[0]) > 3
    with _cluster(target) as cluster:
        assert cluster.produce({(topic, 0): batches[0]}) == {(topic, 0): 0}
    for name, read in READERS.items():
        assert read(target, topic, len(_MESSAGES)) == _MESSAGES, name


@pytest.mark.parametrize("codec", _CODECS)
def test_what_clients_write_comes_out_in_columns(target: Target, codec: str) -> None:
    for name, write in WRITERS.items():
        topic = target.create_topic()
        write(target, topic, _WRITTEN, codec=codec)
        assert _read(target, topic, len(_WRITTEN)) == _WRITTEN, name


def _read(target: Target, topic: str, end: int) -> list[Message]:
    read: list[Message] = []
    with _cluster(target) as cluster, cluster.stream({(topic, 0): (0, end)}) as stream:
        for _, fetched in stream:
            decoded = decode(fetched.records, fetched.fetch_offset, end, headers=True, aborted=None)
            assert decoded.headers is not None
            columns = (decoded.key, decoded.value, decoded.timestamp_ms, decoded.headers)
            for key, value, timestamp_ms, found in zip(
                *(column.to_pylist() for column in columns), strict=True
            ):
                headers = tuple((header["key"], header["value"]) for header in found or ())
                read.append(Message(value, key, headers, timestamp_ms))
    return read
