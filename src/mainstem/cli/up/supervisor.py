"""`mainstem up --nodes N`: starts the nodes of a cluster, tells what becomes of each, starts again those that
died, and stops all of them.

One thread waits for everything at once: signals, ended children, ready lines and the time of the next
restart. It imports as little as a single broker's start does.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mainstem.cli.up.node_log import LastWords, last_warning, last_words, open_log
from mainstem.local_cluster.node_process import NodeProcess

STOP_S = 4.5
_BACKOFF_FIRST_S, _BACKOFF_MAX_S = 1.0, 30.0
# Who has been up for this long starts again at once, and its failures before are forgotten.
_STEADY_S = 10.0
_KILLED_WAIT_S = 0.05
# Who has been starting for this long is to say why.
_SLOW_S = 5.0


class State(StrEnum):
    STARTING = "starting"
    UP = "up"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Member:
    """One node: how it is started, where it logs to, and whether it is told to format its data first."""

    node_id: int
    options: Sequence[str]
    log: Path
    format_options: Sequence[str] = ()


class _Node:
    """A member and its life so far."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.process: NodeProcess | None = None
        self.state = State.STOPPED
        self.has_been_up = False
        self.refuses = False
        self.began = 0.0
        # Where its log ended then, and when to ask why it is not up.
        self.log_begin = 0
        self.remark_at: float | None = None
        self.failures = 0
        self.start_at: float | None = 0.0

    def next_pause_s(self, now: float) -> float:
        """How long to rest before the next start."""
        if self.state is State.UP and now - self.began >= _STEADY_S:
            self.failures = 0
            return 0.0
        self.failures += 1
        return float(min(_BACKOFF_MAX_S, _BACKOFF_FIRST_S * 2 ** (self.failures - 1)))


class Supervisor:
    """`tell` hears every change of a node: its id, state and a remark."""

    def __init__(
        self,
        members: Sequence[Member],
        *,
        restart: bool,
        lock_fd: int,
        tell: Callable[[int, State, str], None],
        on_up: Callable[[int], None],
        on_all_up: Callable[[], None],
    ) -> None:
        self._nodes = [_Node(member) for member in members]
        self._restart = restart
        self._lock_fd = lock_fd
        self._tell = tell
        self._on_up = on_up
        self._on_all_up = on_all_up
        self._all_were_up = False
        self._selector = selectors.DefaultSelector()
        self._stop_signals = 0
        self._exit_code = 0
        # Of the node that was the last to refuse, where none of them can start.
        self.refusal: tuple[int, LastWords] | None = None

    def run(self, owner: int | None = None) -> int:
        """Run until a signal, until `owner` (a pipe) is closed, or until no node is left; the exit code."""
        waker, woken = socket.socketpair()
        for end in (waker, woken):
            end.setblocking(False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        self._selector.register(woken, selectors.EVENT_READ, lambda: _drain(woken))
        if owner is not None:
            self._selector.register(owner, selectors.EVENT_READ, lambda: self._hear_owner(owner))
        try:
            while not self._stop_signals and self._something_to_do():
                self._start_due()
                self._wait(self._seconds_to_next_step())
                self._look_at_ended()
                self._look_at_slow()
            return self._exit_code
        finally:
            self._stop_all()
            signal.set_wakeup_fd(-1)
            self._selector.close()
            waker.close()
            woken.close()

    def _something_to_do(self) -> bool:
        return any(node.process is not None or node.start_at is not None for node in self._nodes)

    def _on_signal(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self._stop_signals += 1

    def _hear_owner(self, owner: int) -> None:
        if not os.read(owner, 4096):
            self._selector.unregister(owner)
            self._stop_signals += 1

    def _start_due(self) -> None:
        now = time.monotonic()
        for node in self._nodes:
            if node.start_at is not None and node.start_at <= now:
                self._start(node, now)

    def _start(self, node: _Node, now: float) -> None:
        member = node.member
        options = [*member.options, *(() if node.has_been_up else member.format_options)]
        with open_log(member.log) as log:
            node.log_begin = log.tell()
            node.process = NodeProcess(options, log.fileno(), keep_open=[self._lock_fd])
        process = node.process
        node.state, node.began, node.start_at = State.STARTING, now, None
        node.remark_at = now + _SLOW_S
        self._selector.register(process.output, selectors.EVENT_READ, lambda: self._read(node))
        again = "again, " if node.has_been_up or node.failures else ""
        self._tell(member.node_id, State.STARTING, f"{again}process {process.pid}")

    def _read(self, node: _Node) -> None:
        process = node.process
        assert process is not None
        if not process.read():
            self._selector.unregister(process.output)  # what it says next is its exit code
        elif process.ready and node.state is State.STARTING:
            took_s = time.monotonic() - node.began
            node.state, node.began, node.remark_at = State.UP, time.monotonic(), None
            node.has_been_up = True
            self._on_up(node.member.node_id)
            self._tell(node.member.node_id, State.UP, f"after {took_s:.1f} s")
            if not self._all_were_up and all(other.has_been_up for other in self._nodes):
                self._all_were_up = True
                self._on_all_up()

    def _look_at_ended(self) -> None:
        for node in self._nodes:
            if node.process is not None and not node.process.running:
                self._note_end(node)

    def _look_at_slow(self) -> None:
        now = time.monotonic()
        for node in self._nodes:
            if node.remark_at is not None and node.remark_at <= now:
                node.remark_at = None
                why = last_warning(node.member.log, node.log_begin) or f"see {node.member.log}"
                self._tell(
                    node.member.node_id, State.STARTING, f"not up after {now - node.began:.0f} s: {why}"
                )

    def _note_end(self, node: _Node) -> None:
        code = self._release(node)
        reason = _reason(code, node.member.log)
        now = time.monotonic()
        node.refuses = code > 0 and not node.has_been_up
        if all(other.refuses for other in self._nodes):
            # None of them can start at all, and each said why: to try again would not help.
            self._tell(node.member.node_id, State.STOPPED, reason)
            self._exit_code, self._stop_signals = 1, 1
            self.refusal = node.member.node_id, last_words(node.member.log)
        elif not self._restart:
            self._tell(node.member.node_id, State.STOPPED, reason)
            self._exit_code = 1
        else:
            pause_s = node.next_pause_s(now)
            node.start_at = now + pause_s
            when = f"; starts again in {pause_s:.0f} s" if pause_s else "; starts again now"
            if node.refuses and not any(other.has_been_up for other in self._nodes):
                when = ""  # it does not, if the others refuse as well
            self._tell(node.member.node_id, State.STOPPED, f"{reason}{when}")
        node.state = State.STOPPED

    def _release(self, node: _Node) -> int:
        process = node.process
        assert process is not None
        node.process = node.remark_at = None
        if process.output in self._selector.get_map():
            self._selector.unregister(process.output)
        code = process.exit_code
        assert code is not None
        process.close()
        return code

    def _seconds_to_next_step(self) -> float | None:
        times = [at for node in self._nodes for at in (node.start_at, node.remark_at) if at is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _wait(self, timeout_s: float | None) -> None:
        for key, _ in self._selector.select(timeout_s):
            key.data()

    def _stop_all(self) -> None:
        """All at once, for a node that waits for the others to take over its partitions would wait in vain.
        Whoever is left when the time is over, or when a second signal comes, is killed.
        """
        signals = self._stop_signals
        for node in self._nodes:
            if node.process is not None:
                node.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        while any(node.process is not None for node in self._nodes):
            self._wait(max(_KILLED_WAIT_S, deadline - time.monotonic()))
            killing = time.monotonic() >= deadline or self._stop_signals > signals
            for node in self._nodes:
                if node.process is None:
                    continue
                if killing and node.process.running:
                    node.process.send_signal(signal.SIGKILL)
                if not node.process.running:
                    reason = _reason(self._release(node), node.member.log)
                    self._tell(node.member.node_id, State.STOPPED, "" if reason == _IN_ORDER else reason)


_IN_ORDER = "ended in order"


def _reason(code: int, log: Path) -> str:
    """Why a process ended, in its own last words where it has left any."""
    if code == 0:
        return _IN_ORDER
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    said = last_words(log).message
    return f"exit code {code}: {said}" if said else f"exit code {code}"


def _drain(end: socket.socket) -> None:
    try:
        while end.recv(4096):
            pass
    except BlockingIOError:
        pass
