"""Loads a coordinator's state: every record of its partition, replayed in order, a turn at a time.

The whole log counts, not only what is known to be committed: a new leader hears late of how far that goes,
and its coordinator must not forget what the one before it has acknowledged. What is behind may still turn out
to be committed nowhere else; so nothing of it is told before the high watermark has passed the end.

Records that were written in a transaction are told as such, and so is its end, in the order of the log: what
to make of a transaction that is still open is for the machine to say.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from mainstem.broker.logs.partition import Partition
from mainstem.broker.turns import LONG_TURN_MS, Turns
from mainstem.coordinator.machine import Machine, TransactionalMachine
from mainstem.logs import about
from mainstem.protocol.errors import ErrorCode, KafkaError, ProtocolError
from mainstem.records.batch import BatchHeader, iter_headers
from mainstem.records.control import ControlType, control_type_of
from mainstem.records.record import iter_records

logger = logging.getLogger(__name__)

_ACKS_ALL: Final = -1
_RETRY_SECONDS_MIN: Final = 0.1
_RETRY_SECONDS_MAX: Final = 10.0


async def load(partition: Partition, machine: Machine, buffer_bytes: int, turns: Turns) -> None:
    """Replay the partition's log into the machine, up to its end, and wait until all of it is committed.
    KafkaError when the log cannot be read, or another broker leads.
    """
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
        begin = offset
        for position, header in iter_headers(data):
            replayer.replay_batch(data[position : position + header.size], header)
            offset = header.next_offset
            await turn.yield_to_loop()
        if offset == begin:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} cannot be read at {offset}")
    await _committed(partition, offset, loop)


async def _committed(partition: Partition, end_offset: int, loop: asyncio.AbstractEventLoop) -> None:
    if partition.high_watermark >= end_offset:
        return
    waiter = _Committing(loop)
    partition.add_ack_waiter(end_offset - 1, _ACKS_ALL, waiter)
    try:
        await waiter.future
    finally:
        partition.remove_ack_waiter(waiter)


class _Committing:
    """A load that waits for the high watermark."""

    __slots__ = ("future",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[None] = loop.create_future()

    def acknowledged(self, partition: Partition, error: ErrorCode) -> None:
        if self.future.done():
            return  # the load was cancelled
        if error:
            self.future.set_exception(KafkaError(error))
        else:
            self.future.set_result(None)


class LoadRetries:
    """The partitions whose coordinator could not begin in a leader epoch, or not go on: `begin` is called for
    each of them again, after a pause that grows.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, begin: Callable[[int], None]) -> None:
        self._loop = loop
        self._begin = begin
        self._pauses: dict[int, float] = {}
        self._timers: dict[int, tuple[int, asyncio.TimerHandle]] = {}

    def later(self, index: int, leader_epoch: int) -> None:
        """It has failed, once more."""
        self.cancel(index)
        pause = self._pauses.get(index, _RETRY_SECONDS_MIN)
        self._pauses[index] = min(2 * pause, _RETRY_SECONDS_MAX)
        self._timers[index] = leader_epoch, self._loop.call_later(pause, self._again, index)

    def is_waiting(self, index: int, leader_epoch: int) -> bool:
        """Whether it will be tried again in this epoch."""
        waiting = self._timers.get(index)
        return waiting is not None and waiting[0] == leader_epoch

    def _again(self, index: int) -> None:
        del self._timers[index]
        self._begin(index)

    def cancel(self, index: int) -> None:
        """It is tried now, or no more."""
        waiting = self._timers.pop(index, None)
        if waiting is not None:
            waiting[1].cancel()

    def forget(self, index: int) -> None:
        """It is loaded, or not this broker's any more."""
        self.cancel(index)
        self._pauses.pop(index, None)

    def forget_all(self) -> None:
        for index in list(self._pauses):
            self.forget(index)


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
