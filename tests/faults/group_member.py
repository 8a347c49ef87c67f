"""A consumer in a process of its own that writes down what happens to it, for tests that kill it.

    python -m tests.faults.group_member

reads one JSON description of a member per line, forks a process for each (its libraries are loaded already)
and answers with the process id. When its input ends, all of them end. SIGTERM makes a member leave in order.

A history has one line per event, written before anything else happens:
`assigned P`, `revoked P`, `lost P`, `got P OFFSET VALUE`, `committed P OFFSET`, `refused ERROR`.
"""

import json
import os
import signal
import sys
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

_BATCH_MAX = 50


class Recorder:
    """One member's life."""

    def __init__(self, description: dict[str, Any]) -> None:
        self._topic: str = description["topic"]
        self._file = os.open(description["history"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._consumer = Consumer({**description["settings"], "enable.auto.commit": False})
        self._next: dict[int, int] = {}  # what is processed but not committed
        self._owned: set[int] = set()
        self._parent = os.getppid()
        self._ending = False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self._ending = True

    def live(self) -> None:
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        while not self._ending and os.getppid() == self._parent:
            timeout = 0.2
            for _ in range(_BATCH_MAX):
                message = self._consumer.poll(timeout)
                if message is None:
                    break
                timeout = 0
                if message.error() is None:
                    partition, offset = message.partition() or 0, message.offset() or 0
                    self._note(f"got {partition} {offset} {(message.value() or b'').decode()}")
                    self._next[partition] = offset + 1
            self._commit(list(self._next))
        self._consumer.close()

    def _commit(self, partitions: Iterable[int]) -> None:
        wanted = {number: self._next.pop(number) for number in partitions if number in self._next}
        if not wanted:
            return
        offsets = [TopicPartition(self._topic, number, offset) for number, offset in wanted.items()]
        # A refusal may pass; it is tried again as long as the partition is here.
        again = {number: offset for number, offset in wanted.items() if number in self._owned}
        try:
            for done in self._consumer.commit(offsets=offsets, asynchronous=False) or []:
                if done.error is None:
                    again.pop(done.partition, None)
                    self._note(f"committed {done.partition} {done.offset}")
                else:
                    self._note(f"refused {done.error.name()}")
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            self._note(f"refused {reason.name()}")
        self._next = again | self._next

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._owned |= {it.partition for it in partitions}
        self._note(*(f"assigned {it.partition}" for it in partitions))

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit([it.partition for it in partitions])
        self._give_up(partitions)
        self._note(*(f"revoked {it.partition}" for it in partitions))

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions)
        self._note(*(f"lost {it.partition}" for it in partitions))

    def _give_up(self, partitions: list[TopicPartition]) -> None:
        for it in partitions:
            self._owned.discard(it.partition)
            self._next.pop(it.partition, None)

    def _note(self, *lines: str) -> None:
        if lines:
            os.write(self._file, "".join(f"{line}\n" for line in lines).encode())


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the members' exit codes
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            Recorder(json.loads(line)).live()
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
