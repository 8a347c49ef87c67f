"""Loads a coordinator's state: every record of its partition, replayed in order, a slice at a time.

Records that were written in a transaction count from its commit marker on; those of an aborted one never do.
"""

import asyncio
import logging

from mainstem.broker.partition import Partition
from mainstem.coordinator.machine import Machine
from mainstem.protocol.errors import ProtocolError
from mainstem.records.batch import BatchHeader, iter_headers
from mainstem.records.control import ControlType, control_type_of
from mainstem.records.record import Record, iter_records

logger = logging.getLogger(__name__)

# Others have their turn after so much time: replaying is a Python loop on the event loop.
_SLICE_SECONDS = 0.005


async def load(partition: Partition, machine: Machine, buffer_bytes: int) -> None:
    """Replay the partition's log into the machine, up to its end."""
    log = partition.log
    offset = log.log_start_offset
    replayer = _Replayer(partition, machine)
    loop = asyncio.get_running_loop()
    slice_end = loop.time() + _SLICE_SECONDS
    while offset < log.log_end_offset:
        result = log.read(offset, buffer_bytes)
        if result.records is None:
            break
        data = memoryview(await loop.run_in_executor(None, result.records.read))
        for position, header in iter_headers(data):
            replayer.replay_batch(data[position : position + header.size], header)
            offset = header.next_offset
            if loop.time() > slice_end:
                await asyncio.sleep(0)
                slice_end = loop.time() + _SLICE_SECONDS


class _Replayer:
    """Keeps apart what belongs to transactions that are still open."""

    def __init__(self, partition: Partition, machine: Machine) -> None:
        self._partition = partition
        self._machine = machine
        self._open: dict[int, list[Record]] = {}

    def replay_batch(self, batch: memoryview, header: BatchHeader) -> None:
        if header.is_control:
            for record in iter_records(batch):
                held = self._open.pop(header.producer_id, [])
                if control_type_of(record.key) is ControlType.COMMIT:
                    self._replay(held)
        elif header.is_transactional:
            self._open.setdefault(header.producer_id, []).extend(iter_records(batch))
        else:
            self._replay(list(iter_records(batch)))

    def _replay(self, records: list[Record]) -> None:
        for record in records:
            if record.key is None:
                continue
            try:
                self._machine.replay(record.key, record.value)
            except ProtocolError as error:
                logger.error("%s: passing over the record at %d: %s", self._partition, record.offset, error)
