"""What a broker has acknowledged and what was ever read from it, to be held against what it serves later.

Writers note; nobody forgets. A record that was read once counts like an acknowledged one: its offset may
never show another payload.
"""

from collections.abc import Iterator
from threading import Lock

from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.records.batch import read_header
from mainstem.records.record import Record, iter_records
from mainstem.testing import Broker
from tests.support.scenario import fetch_request
from tests.support.target import Target
from tests.support.wire import WireClient

_FETCH_BYTES = 4 * 1024 * 1024
_FETCH_BY_NAME = 12


def connect(broker: Broker) -> WireClient:
    """A new connection to the broker."""
    return WireClient(Target("mainstem", broker.bootstrap_servers, broker.data_dir))


def read_batches(client: WireClient, topic: str, partition: int, offset: int) -> Iterator[bytes]:
    """Every batch from `offset` to the end of a partition."""
    while True:
        request = fetch_request(topic, offset, partition=partition, max_bytes=_FETCH_BYTES)
        (answer,) = client.call(request, _FETCH_BY_NAME).responses[0].partitions
        assert answer.error_code == 0, f"{topic}-{partition} at {offset}: {ErrorCode(answer.error_code).name}"
        data = bytes(answer.records or b"")
        if not data:
            assert offset == answer.high_watermark, f"{topic}-{partition} gives nothing at {offset}"
            return
        position = 0
        while position < len(data):
            header = read_header(data, position)
            yield data[position : position + header.size]
            position += header.size
            offset = header.next_offset


def read_all(client: WireClient, topic: str, partition: int) -> list[Record]:
    """The records of a partition; offsets must follow each other and leader epochs must not go back."""
    records: list[Record] = []
    epoch = -1
    for data in read_batches(client, topic, partition, 0):
        header = read_header(data, 0)
        assert header.base_offset == len(records), f"{header.base_offset} comes after {len(records) - 1}"
        assert header.partition_leader_epoch >= epoch, f"{topic}-{partition} goes back to epoch {epoch}"
        epoch = header.partition_leader_epoch
        records += iter_records(data)
    return records


class Ledger:
    """The memory of a test. Payloads are unique and look like `WRITER:NUMBER`."""

    def __init__(self) -> None:
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = {}
        self._seen: dict[TopicPartition, dict[int, bytes]] = {}
        self._leader_epochs: dict[tuple[bytes, int], int] = {}
        self._producer_ids: set[int] = set()
        self._lock = Lock()

    @property
    def count(self) -> int:
        """How many records were acknowledged so far."""
        with self._lock:
            return sum(map(len, self.acknowledged.values()))

    def note(self, where: TopicPartition, offset: int, payloads: list[bytes]) -> None:
        """A batch was acknowledged with this base offset."""
        with self._lock:
            known = self.acknowledged.setdefault(where, {})
            for number, payload in enumerate(payloads, offset):
                assert known.setdefault(number, payload) == payload, f"{where}: offset {number} given twice"

    def note_producer_id(self, producer_id: int) -> None:
        with self._lock:
            assert producer_id not in self._producer_ids, f"producer id {producer_id} was issued twice"
            self._producer_ids.add(producer_id)

    def forget_from(self, where: TopicPartition, offset: int) -> None:
        """Records from this offset on were destroyed by the test itself."""
        for known in (self.acknowledged[where], self._seen.get(where, {})):
            for lost in [number for number in known if number >= offset]:
                del known[lost]

    def check(self, client: WireClient) -> int:
        """Compare everything with what the broker serves now; returns the number of records compared."""
        self.check_leader_epochs(client)
        return sum(self.check_partition(client, where) for where in list(self.acknowledged))

    def check_partition(self, client: WireClient, where: TopicPartition) -> int:
        found = {record.offset: record.value or b"" for record in read_all(client, *where)}
        for offset, payload in self.acknowledged[where].items():
            assert offset in found, (
                f"{where}: acknowledged {payload!r} at {offset} is lost; ends at {len(found)}"
            )
            assert found[offset] == payload, f"{where}: {found[offset]!r} at {offset}, not {payload!r}"
        for offset, payload in self._seen.get(where, {}).items():
            assert found.get(offset) == payload, f"{where}: offset {offset} was {payload!r} before"
        self._seen[where] = found
        _check_order(where, found)
        return len(self.acknowledged[where])

    def check_leader_epochs(self, client: WireClient) -> None:
        """The epoch of a topic id's partition is larger after every start, and never smaller."""
        for topic in client.call(MetadataRequest(topics=None)).topics:
            for partition in topic.partitions:
                key = (topic.topic_id, partition.partition_index)
                assert partition.leader_epoch >= self._leader_epochs.get(key, 0), (topic.name, partition)
                self._leader_epochs[key] = partition.leader_epoch


def _check_order(where: TopicPartition, found: dict[int, bytes]) -> None:
    """Every writer's records are there once, in the order of writing."""
    last: dict[bytes, int] = {}
    for offset in sorted(found):
        writer, _, number = found[offset].partition(b":")
        assert int(number) > last.get(writer, -1), (
            f"{where}: {found[offset]!r} at {offset} comes after {last}"
        )
        last[writer] = int(number)
