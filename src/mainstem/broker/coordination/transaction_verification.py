"""Sees to it that the coordinator knows of a partition before a transaction writes into it (KIP-890).

A batch of a transaction that is open in its partition needs no question. Otherwise the log hands out a guard,
the coordinator is asked to check the partition or, for clients that leave this to the broker, to add it; and
the log takes the batch only if no marker came in between. All partitions of a request are one question.
"""

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final

from mainstem.broker.requests.context import RequestContext
from mainstem.coordinator.transaction.known_errors import PRODUCE, as_known
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import NO_PRODUCER_ID, PRODUCER_ID_POSITION, read_header
from mainstem.storage.producers.verification import VerificationGuard

if TYPE_CHECKING:
    from mainstem.broker.coordination.transactions import TransactionCoordinators, Verdicts
    from mainstem.broker.logs.partition import Partition

_PRODUCER: Final = Struct(">qhi")  # id, epoch and base sequence, as they stand in the header of a batch
_ADDS_SINCE: Final = 12  # of Produce: partitions are added by the broker
# Clients try a batch again after this error, without asking for metadata first.
_TRY_AGAIN: Final = ErrorCode.NOT_ENOUGH_REPLICAS
_TRANSIENT: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    # Another partition of the request could not be decided on.
    ErrorCode.OPERATION_NOT_ATTEMPTED,
)


def verify_at_once(
    transactions: "TransactionCoordinators",
    transactional_id: str,
    coordinator_index: int,
    version: int,
    partition: "Partition",
    batch: memoryview,
) -> tuple[bool, VerificationGuard | None]:
    """Whether one batch is known to be part of its transaction, and the guard to append it with. False when
    its coordinator, that of this partition of `__transaction_state`, has to be asked in the ordinary way.
    KafkaError when the producer is an old one.
    """
    producer_id, producer_epoch, base_sequence = _PRODUCER.unpack_from(batch, PRODUCER_ID_POSITION)
    if producer_id == NO_PRODUCER_ID:
        return False, None
    adds = version >= _ADDS_SINCE
    guard = partition.needs_verification(producer_id, producer_epoch, base_sequence, supports_epoch_bump=adds)
    if guard is None or adds:
        return guard is None, None
    place = (partition.topic, partition.index)
    is_part = transactions.shell.try_at_once(
        coordinator_index,
        lambda machine, _: machine.is_part(transactional_id, producer_id, producer_epoch, place),
    )
    return is_part, guard


class Verification:
    """The transactional batches of one produce request, and what is known of them."""

    def __init__(self, ctx: RequestContext, transactional_id: str) -> None:
        self._ctx = ctx
        self._transactional_id = transactional_id
        self._adds = ctx.version >= _ADDS_SINCE
        self._batches: list[tuple[Partition, int]] = []  # with their base sequences
        self._producer: tuple[int, int] | None = None
        self._then: Callable[[], None] | None = None
        self._began = 0.0
        self._cancelled = False
        self._done = False
        self.guards: dict[Partition, VerificationGuard] = {}
        self._leader_epochs: dict[Partition, int] = {}  # in which the guards were given
        self.errors: dict[Partition, KafkaError] = {}

    def add(self, partition: "Partition", batch: memoryview) -> None:
        """Take up a transactional batch. KafkaError when it is not of the same producer as the others."""
        header = read_header(batch)
        if header.producer_id == NO_PRODUCER_ID:
            return  # no transaction can be opened by it
        producer = (header.producer_id, header.producer_epoch)
        if self._producer not in (None, producer):
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the request holds batches of several producers"
            )
        self._producer = producer
        self._batches.append((partition, header.base_sequence))

    def run(self, then: Callable[[], None]) -> bool:
        """Ask. True when all is known already; else `then` is called when it is."""
        self._began = self._ctx.broker.loop.time()
        self._ask()
        if not self._done:
            self._then = then
        return self._done

    def cancel(self) -> None:
        """The connection is closed: nobody waits for it any more."""
        self._cancelled = True

    def _ask(self) -> None:
        broker = self._ctx.broker
        self.guards.clear()
        self.errors.clear()
        if self._producer is not None and (
            self._adds or broker.config.get("transaction.partition.verification.enable")
        ):
            self._take_guards(*self._producer)
        if not self.guards:
            self._finish()
            return
        assert self._producer is not None
        broker.transactions.decide_anywhere(
            self._transactional_id,
            *self._producer,
            [(partition.topic, partition.index) for partition in self.guards],
            verify_only=not self._adds,
            then=self._decided,
        )

    def _take_guards(self, producer_id: int, producer_epoch: int) -> None:
        for partition, base_sequence in self._batches:
            if partition in self.guards or partition in self.errors:
                continue
            try:
                guard = partition.needs_verification(
                    producer_id, producer_epoch, base_sequence, supports_epoch_bump=self._adds
                )
            except KafkaError as error:
                self.errors[partition] = error
            else:
                if guard is not None:
                    self.guards[partition] = guard
                    self._leader_epochs[partition] = partition.leader_epoch

    def _decided(self, verdicts: "Verdicts") -> None:
        if self._cancelled:
            return
        if self._adds and ErrorCode.CONCURRENT_TRANSACTIONS in verdicts.values() and self._wait_a_little():
            return
        for partition in self.guards:
            verdict = verdicts[partition.topic, partition.index]
            if verdict != ErrorCode.NONE:
                self.errors[partition] = self._refusal(verdict)
            elif partition.leader_epoch != self._leader_epochs[partition]:
                # The transaction may have gone on, and ended, under another leader.
                self.errors[partition] = KafkaError(
                    ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} was led by another broker meanwhile"
                )
        self._finish()

    def _wait_a_little(self) -> bool:
        """The former transaction is being completed: asking once more is cheaper than having the client send
        everything again. False when that has gone on for long enough.
        """
        broker = self._ctx.broker
        longest_ms = min(
            broker.config.get("add.partitions.to.txn.retry.backoff.max.ms"),
            broker.config.get("request.timeout.ms"),
        )
        if (broker.loop.time() - self._began) * 1000 >= longest_ms:
            return False
        pause_ms = broker.config.get("add.partitions.to.txn.retry.backoff.ms")
        broker.loop.call_later(pause_ms / 1000, self._ask_again)
        return True

    def _ask_again(self) -> None:
        if not self._cancelled:
            self._ask()

    def _refusal(self, verdict: ErrorCode) -> KafkaError:
        """A coordinator's error as producers know it."""
        verdict = as_known(verdict, PRODUCE, self._ctx.version)
        if verdict == ErrorCode.INVALID_TXN_STATE:
            return KafkaError(verdict, "the partition was not added to the transaction")
        if verdict in _TRANSIENT or (verdict == ErrorCode.CONCURRENT_TRANSACTIONS and not self._adds):
            return KafkaError(
                _TRY_AGAIN,
                f"it is not known yet whether the partition is part of the transaction: {verdict.name}",
            )
        return KafkaError(verdict)

    def _finish(self) -> None:
        self._done = True
        if self._then is not None:
            self._then()
