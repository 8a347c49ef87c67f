"""Has compacted topics cleaned: chooses the log that needs it most, has a process do it, swaps the result in.

`log.cleaner.threads` is the number of processes that work at a time. Nothing here looks at a record, and
nothing waits for a disk on the event loop. A log whose cleaning fails is left alone until the next start, and
does not keep others from being cleaned.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from mainstem.broker.logs.log_cleaner_process import CleanerLostError, CleanerProcess
from mainstem.broker.logs.partition import Partition
from mainstem.broker.logs.retention import remove_old_segments
from mainstem.logs import about
from mainstem.protocol.errors import KafkaError
from mainstem.storage.cleaner import swap
from mainstem.storage.cleaner.checkpoint import CleanerCheckpoint
from mainstem.storage.cleaner.jobs import Answer, CleanedGroup, Finished, Limits, job_for
from mainstem.storage.cleaner.selection import Candidate, dirtiest_last, examine
from mainstem.storage.log import Log
from mainstem.storage.segments.segment import Segment

if TYPE_CHECKING:
    from mainstem.broker.logs.replicas import Replicas
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

# After so many processes that died over it a log counts as one that cannot be cleaned.
_LOSSES_MAX: Final = 3
# At most one part in so many of the time goes into searches for what to clean, or into writing checkpoints.
_COST_FACTOR: Final = 10
_REMOVAL_SECONDS_MIN: Final = 0.1


# What a log was like when its cleaning began. If it was cut, led or followed in another epoch, moved or
# starts elsewhere since, what was made of it is thrown away.
_State = tuple[str, int, int, int]


def _state(partition: Partition) -> _State:
    log = partition.log
    return log.directory, log.truncations, partition.leader_epoch, log.log_start_offset


class CleanerTotals:
    """What was cleaned since the start."""

    __slots__ = ("bytes_read", "bytes_written", "milliseconds", "runs")

    def __init__(self) -> None:
        self.runs = self.milliseconds = self.bytes_read = self.bytes_written = 0

    def add(self, finished: Finished) -> None:
        self.runs += 1
        self.milliseconds += finished.milliseconds
        self.bytes_read += finished.bytes_read
        self.bytes_written += finished.bytes_written


class LogCleaner:
    """The compaction of a node, from `start` until `stop`."""

    def __init__(self, server: "SharedServer", replicas: "Replicas") -> None:
        self._server = server
        self._replicas = replicas
        self._checkpoint = CleanerCheckpoint(server.log_manager)
        self._cleaning: dict[Log, asyncio.Task[None]] = {}
        self._idle: list[CleanerProcess] = []
        self._losses: dict[Log, int] = {}
        # Until when a log is left alone that could not be cleaned a moment ago.
        self._resting: dict[Log, float] = {}
        # Why a log cannot be cleaned.
        self.uncleanable: dict[Log, str] = {}
        # What a log looked like when there was nothing to do in it and time alone would not change that.
        self._in_order: dict[Log, tuple[object, ...]] = {}
        # What the last search found and nobody has begun with, the dirtiest last; when the next search is.
        self._found: list[Partition] = []
        self._search_due = 0.0
        self._search_not_before = 0.0
        self._removal_due = 0.0
        self._write_due = 0.0
        self.totals = CleanerTotals()
        self._limits = self.limits()
        self._wake = asyncio.Event()
        self._supervisor: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._supervisor = self._server.loop.create_task(self._supervise())

    async def stop(self) -> None:
        """A swap that has begun is completed, everything else is broken off."""
        tasks = [*self._cleaning.values()]
        if self._supervisor is not None:
            tasks.append(self._supervisor)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._checkpoint.is_dirty:
            await self._server.loop.run_in_executor(None, self._checkpoint.writing())
        await self._end_idle()

    @property
    def running(self) -> int:
        """How many logs are being cleaned."""
        return len(self._cleaning)

    def is_cleaning(self, log: Log) -> bool:
        """Whether its segments must stay as they are."""
        return log in self._cleaning

    def break_off(self, log: Log) -> None:
        """Stop cleaning a log, soon; what is swapped in already stays."""
        task = self._cleaning.get(log)
        if task is not None:
            task.cancel()

    def state_of(self, partition: Partition) -> Candidate | None:
        """How much of a log is clean and how much could be cleaned; None where nothing is compacted."""
        log = partition.log
        if not log.config.compact or log.health.failure is not None:
            return None
        offset = self._checkpoint.offset_of(log)
        return examine(log, offset, partition.high_watermark, self._server.clock.now_ms())

    def clean_offset_of(self, log: Log) -> int | None:
        """Up to where a log is clean; None when it was never cleaned."""
        return self._checkpoint.offset_of(log)

    def relocated(self, log: Log, clean_offset: int | None) -> None:
        """A log is in another directory now, and as clean as it was before."""
        self._checkpoint.relocated(log, clean_offset)
        self._wake.set()

    def reconfigured(self) -> None:
        """The settings may be others now. What is being cleaned under other limits begins again."""
        limits = self.limits()
        if limits != self._limits:
            self._limits = limits
            for task in self._cleaning.values():
                task.cancel()
        self._search_due = self._removal_due = 0.0
        self._wake.set()

    def limits(self) -> Limits:
        """What each process that cleans may use."""
        config = self._server.config
        processes = max(1, config.get("log.cleaner.threads"))
        return Limits(
            map_bytes=config.get("log.cleaner.dedupe.buffer.size") // processes,
            load_factor=config.get("log.cleaner.io.buffer.load.factor"),
            buffer_bytes=config.get("log.cleaner.io.buffer.size") // processes // 2,
            bytes_per_second=config.get("log.cleaner.io.max.bytes.per.second") / processes,
        )

    # ---- choosing

    async def _supervise(self) -> None:
        while True:
            try:
                await self._begin_what_is_due()
                await self._remove_old_segments()
                await self._write_checkpoint()
            except Exception:
                logger.exception("cannot choose a log to clean; it is tried again")
            if not self._cleaning:
                await self._end_idle()  # it holds a hundred megabytes for nothing
            due = self._removal_due
            if self._is_another_wanted():
                due = min(due, self._search_due)
            if self._checkpoint.is_dirty:
                due = min(due, self._write_due)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            self._wake.clear()

    def _backoff_seconds(self) -> float:
        return float(self._server.config.get("log.cleaner.backoff.ms") / 1000)

    def _is_another_wanted(self) -> bool:
        config = self._server.config
        enabled, processes = config.get("log.cleaner.enable"), config.get("log.cleaner.threads")
        return bool(enabled and len(self._cleaning) < processes)

    async def _begin_what_is_due(self) -> None:
        while self._is_another_wanted():
            if self._server.loop.time() >= self._search_due:
                await self._search()
            found = self._next_found()
            if found is None:
                return
            partition, candidate = found
            task = self._server.loop.create_task(self._clean(partition, candidate))
            self._cleaning[partition.log] = task
            # Not at the end of the task itself: one that is cancelled at once never begins.
            task.add_done_callback(partial(self._ended, partition))

    def _ended(self, partition: Partition, task: asyncio.Task[None]) -> None:
        del self._cleaning[partition.log]
        if not self._found:
            # There may be more to clean in it; else the wait for the next search is worth more than its cost.
            self._search_due = min(self._search_due, self._search_not_before)
        self._wake.set()

    async def _search(self) -> None:
        """Find all logs that are worth cleaning. With many partitions it takes a while, so that they are all
        cleaned, or some time has passed, before the next search.
        """
        loop, turn = self._server.loop, self._server.turns.begin()
        self._search_due = loop.time() + self._backoff_seconds()
        found: dict[Candidate, Partition] = {}
        for partition in list(self._replicas.all()):
            await turn.yield_to_loop()
            candidate = self._examine(partition)
            if candidate is not None:
                found[candidate] = partition
        self._found = [found[candidate] for candidate in dirtiest_last(found)]
        pause_seconds = min(self._backoff_seconds(), _COST_FACTOR * turn.busy_seconds)
        self._search_not_before = loop.time() + pause_seconds
        if self._search_due:  # else the settings were changed meanwhile
            self._search_due = max(self._search_due, self._search_not_before)

    def _next_found(self) -> tuple[Partition, Candidate] | None:
        while self._found:
            partition = self._found.pop()
            candidate = self._examine(partition)
            if candidate is not None and candidate.is_worth_cleaning:
                return partition, candidate
        return None

    def _may_be_cleaned(self, partition: Partition) -> bool:
        log = partition.log
        return (
            not partition.deleted
            and log.health.failure is None
            and log not in self._cleaning
            and log not in self.uncleanable
            # As in Kafka; otherwise the copy of a log that changes all the time would never be complete.
            and (log.topic, log.partition) not in self._server.log_manager.moves
            and self._resting.get(log, 0.0) <= self._server.loop.time()
        )

    def _examine(self, partition: Partition) -> Candidate | None:
        """What there is to clean in a log; None when it may not be cleaned, or is as it was when there was
        nothing to do.
        """
        log = partition.log
        if len(log.segments.bases) == 1 or not log.config.compact or not self._may_be_cleaned(partition):
            return None
        appearance = (log.segments.active, log.config, len(log.segments.bases))
        if self._in_order.get(log) == appearance:
            return None
        offset = self._checkpoint.offset_of(log)
        try:
            candidate = examine(log, offset, partition.high_watermark, self._server.clock.now_ms())
        except (OSError, ValueError) as error:
            self._give_up(log, f"its segments cannot be examined: {error}")
            return None
        waits = log.config.min_compaction_lag_ms > 0 or log.config.max_compaction_lag_ms < 2**63 - 1
        reaches_end = candidate.first_uncleanable_offset == log.segments.active.base_offset
        if reaches_end and not waits and not candidate.is_worth_cleaning:
            self._in_order[log] = appearance
        return candidate

    def _forget_deleted(self) -> None:
        self._checkpoint.forget_deleted()
        logs = set(self._server.log_manager)
        for known in (self.uncleanable, self._in_order, self._losses, self._resting):
            for log in [log for log in known if log not in logs]:
                del known[log]

    async def _remove_old_segments(self) -> None:
        """Compacted logs lose what is before their start, and by age and size where `delete` is a policy too.
        It is done here, as in Kafka, so that nobody else takes segments away while they are cleaned.
        """
        if self._server.loop.time() < self._removal_due:
            return
        self._removal_due = self._server.loop.time() + max(self._backoff_seconds(), _REMOVAL_SECONDS_MIN)
        self._forget_deleted()
        turn = self._server.turns.begin()
        for partition in list(self._replicas.all()):
            await turn.yield_to_loop()
            config = partition.log.config
            if not config.compact or self.is_cleaning(partition.log):
                continue
            if config.delete or len(partition.log.segments.bases) > 1:
                remove_old_segments(self._server, partition)

    async def _write_checkpoint(self) -> None:
        """Its files are as long as there are partitions: with many it is not written after each cleaning."""
        if self._checkpoint.is_dirty and self._server.loop.time() >= self._write_due:
            began_ns = self._server.clock.ticks_ns()
            write = self._checkpoint.writing()
            await self._server.loop.run_in_executor(None, write)
            self._write_due = self._server.loop.time() + _COST_FACTOR * (
                (self._server.clock.ticks_ns() - began_ns) / 1e9
            )

    # ---- cleaning

    async def _clean(self, partition: Partition, candidate: Candidate) -> None:
        log = partition.log
        try:
            log.aborted_transactions(log.log_start_offset, candidate.first_uncleanable_offset)
            if not await self._clean_with_process(partition, candidate):
                self._rest(log)
        except KafkaError as error:
            logger.warning("cannot clean %s now: %s", log.name, error.message, extra=about(log, cause=error))
            self._rest(log)
        except Exception as error:
            logger.exception("cannot clean %s", log.name, extra=about(log))
            self._give_up(log, str(error))
        finally:
            swap.remove_leftovers(log.environment.files, log.directory)

    async def _clean_with_process(self, partition: Partition, candidate: Candidate) -> bool:
        """False when it may be tried again later."""
        log = partition.log
        job = job_for(candidate, self._server.clock.now_ms(), self._limits)
        old = {segment.base_offset: segment for segment in log.segments}
        state = _state(partition)
        process: CleanerProcess | None = None
        try:
            process = self._idle.pop() if self._idle else await CleanerProcess.start(self._server.processes)
            is_done = False
            async for answer in process.run(job):
                is_done = await self._take(partition, candidate, answer, old, state)
                if not is_done:
                    break
            if isinstance(answer, CleanedGroup):
                await process.end()  # it still works on what nobody wants
            else:
                self._idle.append(process)
            return is_done
        except CleanerLostError as error:
            return self._lost(partition, str(error))
        except OSError as error:
            return self._lost(partition, f"cannot run the process that cleans: {error}")
        except BaseException:
            if process is not None:
                await process.end()
            raise

    async def _take(
        self,
        partition: Partition,
        candidate: Candidate,
        answer: Answer,
        old: dict[int, Segment],
        state: _State,
    ) -> bool:
        """False when the job has come to nothing."""
        log = partition.log
        if isinstance(answer, CleanedGroup):
            return await self._swap(partition, answer, [old[base] for base in answer.bases], state)
        if isinstance(answer, Finished):
            self._losses.pop(log, None)
            self.totals.add(answer)
            self._checkpoint.moved_to(log, answer.end_offset)
            _report(candidate, answer)
            return True
        if partition.deleted:
            return True
        if not answer.is_passing:
            self._give_up(log, answer.reason)
            return True
        logger.warning(
            "cannot clean %s now: %s", log.name, answer.reason, extra=about(log, cause=answer.reason)
        )
        return False

    async def _swap(
        self, partition: Partition, group: CleanedGroup, old: list[Segment], state: _State
    ) -> bool:
        """Put a cleaned segment in its place. Not to be broken off half-way."""
        done = self._server.loop.create_task(self._swap_now(partition, group, old, state))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.gather(done, return_exceptions=True)
            raise

    async def _swap_now(
        self, partition: Partition, group: CleanedGroup, old: list[Segment], state: _State
    ) -> bool:
        log, run = partition.log, self._server.loop.run_in_executor
        directory, files = log.directory, log.environment.files

        def is_wanted() -> bool:
            return (
                not partition.deleted
                and log.health.failure is None
                and _state(partition) == state
                and swap.is_current(log, group, old)
            )

        try:
            if not is_wanted():
                await run(None, swap.discard, files, directory, group)
                return False
            await run(None, swap.prepare, files, directory, group, [segment.size for segment in old])
            if not is_wanted():
                await run(None, swap.undo, files, directory, group)
                return False
            swap.install(log, group, self._server.clock.now_ms())
            await run(None, swap.settle, files, directory, group.bases[0])
        except OSError as error:
            if partition.deleted:
                return False
            raise log.health.refuse(error, f"cannot swap a cleaned segment into {log.name}") from error
        return True

    def _rest(self, log: Log) -> None:
        """It is tried again later; others are not kept waiting."""
        self._resting[log] = (
            self._server.loop.time() + self._server.config.get("log.cleaner.backoff.ms") / 1000
        )

    def _lost(self, partition: Partition, reason: str) -> bool:
        log = partition.log
        self._losses[log] = self._losses.get(log, 0) + 1
        logger.error("cleaning %s: %s", log.name, reason, extra=about(log, cause=reason))
        if self._losses[log] >= _LOSSES_MAX:
            self._give_up(log, reason)
        return False

    def _give_up(self, log: Log, reason: str) -> None:
        self.uncleanable[log] = reason
        logger.error(
            "%s is left as it is until the next start: it cannot be cleaned: %s",
            log.name,
            reason,
            extra=about(log, cause=reason),
        )

    async def _end_idle(self) -> None:
        idle, self._idle = self._idle, []
        for process in idle:
            await process.end()


def _report(candidate: Candidate, finished: Finished) -> None:
    logger.info(
        "cleaned %s from offset %d to %d: %d of %d records stay, %d keys, "
        "%.1f MB read and %.1f MB written in %.1f s",
        candidate.log.name, candidate.first_dirty_offset, finished.end_offset,
        finished.records_kept, finished.records_read, finished.keys,
        finished.bytes_read / 1e6, finished.bytes_written / 1e6, finished.milliseconds / 1000,
        extra=about(candidate.log, offset=finished.end_offset),
    )  # fmt: skip
