"""What was sent and is not answered yet: one request per destination, with its time-out and its back-off."""

from msgspec import Struct

from mainstem.cluster.raft.messages import Destination, Request


class _Line(Struct, gc=False):
    """One destination: what is under way there since when, and how long to leave it alone after a failure."""

    destination: Destination
    request: Request | None = None
    sent_ms: int = 0
    rest_until_ms: int = 0


class InFlight:
    def __init__(self, timeout_ms: int, backoff_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._backoff_ms = backoff_ms
        self._lines: dict[int, _Line] = {}

    def reset(self) -> None:
        """Give up everything: answers to what was sent so far are of no use in a new role."""
        self._lines.clear()

    def ready_at(self, destination: Destination, now_ms: int) -> int:
        """When it can be asked: now, or once what is under way is over, or after its back-off."""
        line = self._lines.get(destination.node_id)
        if line is None:
            return now_ms
        if line.request is not None:
            return max(now_ms, line.sent_ms + self._timeout_ms) + 1
        return max(now_ms, line.rest_until_ms)

    def is_asked(self, destination: Destination) -> bool:
        """Whether something is under way there."""
        line = self._lines.get(destination.node_id)
        return line is not None and line.request is not None

    def rests(self, destination: Destination, now_ms: int) -> bool:
        """Whether the last request there failed a short while ago."""
        line = self._lines.get(destination.node_id)
        return line is not None and line.request is None and line.rest_until_ms > now_ms

    def sent(self, destination: Destination, request: Request, now_ms: int) -> None:
        self._lines[destination.node_id] = _Line(destination, request, now_ms)

    def over(self, destination: Destination, request: Request) -> bool:
        """An answer came, or none will: whether anybody still waits for it."""
        line = self._lines.get(destination.node_id)
        if line is None or line.request is not request:
            return False
        line.request = None
        return True

    def back_off(self, destination: Destination, now_ms: int) -> None:
        """Leave the destination alone for a while."""
        line = self._lines.setdefault(destination.node_id, _Line(destination))
        line.rest_until_ms = now_ms + self._backoff_ms

    def overdue(self, now_ms: int) -> list[tuple[Destination, Request]]:
        """What was not answered within controller.quorum.request.timeout.ms."""
        return [
            (line.destination, line.request)
            for line in self._lines.values()
            if line.request is not None and line.sent_ms + self._timeout_ms <= now_ms
        ]

    def deadline_ms(self) -> int | None:
        sent = [line.sent_ms for line in self._lines.values() if line.request is not None]
        return min(sent) + self._timeout_ms if sent else None
