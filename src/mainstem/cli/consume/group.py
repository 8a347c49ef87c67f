"""The reading half of `mainstem consume --group`: a member of a group that commits what it has printed.

A message counts as printed when it is flushed to the output. That much is committed before a partition is
given up and before the member leaves, so that after a clean end nothing printed comes again; after a crash,
what was printed since the last commit does. At the end of a partition its position is committed too, so that
a member that has seen nothing yet finds what came while it was away. Nothing unprinted is ever skipped.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mainstem.cli.clusters.librdkafka import ConnectionNotice
from mainstem.cli.clusters.librdkafka import explain as explain_error
from mainstem.cli.consume.format import Formatter
from mainstem.cli.consume.reader import POLL_BATCH, SILENCE_MAX_S, poll_at_hand
from mainstem.cli.errors import CommandError
from mainstem.cli.streams import say

COMMIT_EVERY_S = 1.0
_EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


# librdkafka keeps the broker's code of a fatal error to itself; its text says which one it was.
_FATAL_HINTS = {
    "group.instance.id": "give every member an id of its own: --group-instance-id",
    "instance ID": "end that member first, or give this one another --group-instance-id",
}
_HINTS = {
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: "its members share no assignor with this one, or speak the other "
    "protocol: see `mainstem groups describe`, and --group-protocol",
    KafkaError.GROUP_MAX_SIZE_REACHED: "the group is full (group.max.size): end a member, or raise the limit",
    KafkaError.UNSUPPORTED_VERSION: "the broker does not serve this protocol: try --group-protocol classic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "ask for the right to read in this group",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "ask for the right to read this topic",
}


def explain(error: KafkaError, bootstrap: str) -> CommandError:
    """Why it cannot be a member any longer, with a next step where one is known."""
    if error.fatal() or error.code() == KafkaError._FATAL:
        reason = error.str().rpartition("Broker: ")[2]
        hints = (hint for part, hint in _FATAL_HINTS.items() if part in reason)
        return CommandError(f"no longer a member of the group: {reason}", next(hints, None))
    if error.code() in _HINTS:
        return CommandError(f"cannot be a member of the group: {error.str()}", _HINTS[error.code()])
    return explain_error(error, bootstrap, "read in the group")


class GroupOptions(NamedTuple):
    """How to join; `protocol` is `classic` or `consumer`."""

    group_id: str
    instance_id: str | None
    protocol: str

    def settings(self, *, from_beginning: bool) -> dict[str, Any]:
        """librdkafka's settings for such a member."""
        settings: dict[str, Any] = {
            "group.id": self.group_id,
            "group.protocol": self.protocol,
            "auto.offset.reset": "earliest" if from_beginning else "latest",
        }
        if self.instance_id is not None:
            settings["group.instance.id"] = self.instance_id
        return settings


class Stop:
    """Set by Ctrl-C or SIGTERM. Only the first of them is waited for: a second one ends the process."""

    def __init__(self) -> None:
        self.exit_code = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Signals end the reading in an orderly way inside the block."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may have handlers, and only it is interrupted
            return
        former = {number: signal.signal(number, self._on_signal) for number in _EXIT_CODES}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: object) -> None:
        self.exit_code = _EXIT_CODES[signal.Signals(number)]
        for each in _EXIT_CODES:  # no exception: a call into librdkafka would hold it back
            signal.signal(each, signal.SIG_DFL)


class GroupReader:
    """Subscribes to a topic; stops after `limit` messages, at every end unless it follows, or on a signal."""

    def __init__(
        self,
        consumer: Consumer,
        topic: str,
        bootstrap: str,
        notice: ConnectionNotice,
        *,
        limit: int | None,
        follow: bool,
        stop: Stop,
    ) -> None:
        self._consumer = consumer
        self._topic = topic
        self._bootstrap = bootstrap
        self._notice = notice
        self._left = limit
        self._follow = follow
        self._stop = stop
        self._heard_at = time.monotonic()
        self._committed_at = time.monotonic()
        self._owned: set[int] = set()
        self._ended: set[int] = set()
        # By partition, the offset behind what was printed and is not committed yet.
        self._uncommitted: dict[int, TopicPartition] = {}
        consumer.subscribe(
            [topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def run(self, out: BinaryIO, write: Formatter) -> None:
        """Write each message as soon as it is there, flush before waiting for more, then commit."""
        try:
            while self._left != 0 and self._stop.exit_code == 0 and not self._is_at_end():
                messages = poll_at_hand(
                    self._consumer, POLL_BATCH if self._left is None else min(POLL_BATCH, self._left)
                )
                self._check_progress(bool(messages))
                self._print(messages, out, write)
                self._commit_now_and_then(idle=not messages)
        finally:
            self._commit()

    def _print(self, messages: list[Message], out: BinaryIO, write: Formatter) -> None:
        # The last message or end of each partition; positions are made of them once for all.
        last: dict[Any, Message] = {}
        for message in messages:
            error = message.error()
            if error is None:
                out.write(write(message))
                last[message.partition()] = message
                if self._left is not None:
                    self._left -= 1
            elif error.code() == KafkaError._PARTITION_EOF:
                last[message.partition()] = message
            else:
                self._on_error(error)
        if messages:
            out.flush()
        for number, message in last.items():
            self._uncommitted[number] = self._position_behind(message)
            if message.error() is None:
                self._ended.discard(number)
            else:
                self._ended.add(number)

    def _position_behind(self, message: Message) -> TopicPartition:
        number: Any = message.partition()
        offset: Any = message.offset()
        if message.error() is not None:  # the end: nothing stands at this offset yet
            return TopicPartition(self._topic, number, offset)
        epoch = message.leader_epoch()
        return TopicPartition(self._topic, number, offset + 1, leader_epoch=-1 if epoch is None else epoch)

    def _is_at_end(self) -> bool:
        return not self._follow and bool(self._owned) and self._ended >= self._owned

    def _commit_now_and_then(self, *, idle: bool) -> None:
        """Not behind every message: a commit costs the broker as much as a message does."""
        now = time.monotonic()
        if self._uncommitted and (idle or now - self._committed_at >= COMMIT_EVERY_S):
            self._commit()
            self._committed_at = now

    def _commit(self) -> bool:
        """False when it has to be tried again: the group is busy with a rebalance, or the broker is away."""
        if not self._uncommitted:
            return True
        try:
            self._consumer.commit(offsets=list(self._uncommitted.values()), asynchronous=False)
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if error.fatal():
                raise explain(error, self._bootstrap) from None
            if error.retriable() or error.code() == KafkaError.REBALANCE_IN_PROGRESS:
                return False
            say(f"mainstem: what was printed last is not committed and comes again ({error.str()})")
        self._uncommitted.clear()
        return True

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._owned |= {part.partition for part in partitions}
        self._ended -= {part.partition for part in partitions}

    def _on_revoke(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if not self._commit():
            say("mainstem: what was printed last could not be committed and comes again")
        self._forget(partitions)

    def _on_lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Somebody else has them already: committing would move the new owner."""
        if any(part.partition in self._uncommitted for part in partitions):
            say("mainstem: partitions are lost to another member; what was printed last may come again there")
        self._forget(partitions)

    def _forget(self, partitions: list[TopicPartition]) -> None:
        for part in partitions:
            self._owned.discard(part.partition)
            self._ended.discard(part.partition)
            self._uncommitted.pop(part.partition, None)

    def _check_progress(self, heard: bool) -> None:
        """Somebody who asked to stop at the end must not wait for ever for an end that does not come."""
        now = time.monotonic()
        if heard:
            self._heard_at = now
            self._notice.heard()
        elif not self._follow and now - self._heard_at > SILENCE_MAX_S:
            what = (
                "the end of its partitions is not reached" if self._owned else "it has no partition to read"
            )
            raise CommandError(
                f"nothing came for {SILENCE_MAX_S} s, and {what}",
                "other members may have every partition: `mainstem groups members GROUP` shows them",
            )

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._MAX_POLL_EXCEEDED:
            say("mainstem: the output stood still for so long that the group went on without this member")
        elif error.fatal() or not error.retriable():
            raise explain(error, self._bootstrap)
