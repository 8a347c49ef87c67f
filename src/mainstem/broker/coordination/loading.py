"""Loads a coordinator's state: every record of its partition, replayed in order, a turn at a time.

Records that were written in a transaction are told as such, and so is its end, in the order of the log: what
to make of a transaction that is still open is for the machine to say.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from mainstem.broker.logs.partition import Partition
from mainstem.broker.turns import LONG_TURN_MS, Turns
from mainstem.coordinator.machine import Machine, TransactionalMachine
from mainstem.logs import about
from mainstem.protocol.errors import ProtocolError
from mainstem.records.batch import BatchHeader, iter_headers
from mainstem.records.control import ControlType, control_type_of
from mainstem.records.record import iter_records

logger = logging.getLogger(__name__)


async def load(partition: Partition, machine: Machine, buffer_bytes: int, turns: Turns) -> None:
    """Replay the partition's log into the machine, up to its end."""
    log = partition.log
    offset = log.log_start_offset
    replayer = _Replayer(partition, machine)
    loop = asyncio.get_running_loop()
    turn = turns.begin(LONG_TURN_MS)  # replaying is a Python loop on the event loop
    while offset < log.log_end_offset:
        result = log.read(offset, buffer_bytes)
        if result.records is None:
            break
        data = memoryview(await loop.run_in_executor(None, result.records.read))
        for position, header in iter_headers(data):
            replayer.replay_batch(data[position : position + header.size], header)
            offset = header.next_offset
            await turn.yield_to_loop()


class _Replayer:
    """Tells records of transactions from others, and what their markers say."""

    def __init__(self, partition: Partition, machine: Machine) -> None:
        self._partition = partition
        self._machine = machine
        self._of_transactions = machine if isinstance(machine, TransactionalMachine) else None

    def replay_batch(self, batch: memoryview, header: BatchHeader) -> None:
        if not header.is_control and not header.is_transactional:
            self._replay(batch, self._machine.replay)
        elif self._of_transactions is None:
            logger.error(
                "%s: passing over a batch of a transaction at %d",
                self._partition,
                header.base_offset,
                extra=about(offset=header.base_offset),
            )
        elif header.is_control:
            for record in iter_records(batch):
                kind = control_type_of(record.key)
                if kind in (ControlType.COMMIT, ControlType.ABORT):
                    self._of_transactions.transaction_ended(header.producer_id, kind is ControlType.COMMIT)
        else:
            self._replay(batch, partial(self._of_transactions.replay_transactional, header.producer_id))

    def _replay(self, batch: memoryview, replay: Callable[[bytes, bytes | None], None]) -> None:
        for record in iter_records(batch):
            if record.key is None:
                continue
            try:
                replay(record.key, record.value)
            except ProtocolError as error:
                logger.error(
                    "%s: passing over the record at %d: %s",
                    self._partition,
                    record.offset,
                    error,
                    extra=about(offset=record.offset),
                )
