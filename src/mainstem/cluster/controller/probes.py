"""Fast fencing: whether a broker of which nothing is heard is dead.

A broken heartbeat connection is only a hint. The broker's own address is dialled: where nobody listens any
more the broker is dead, and need not be waited for; silence says nothing, and is left to the session time-
out. A dying process loses its connections before its listener, or the other way round: while nothing is heard
of the broker it is dialled again and again. To take a living broker for dead loses nothing but costs
elections, so that it is done to one start of a broker at most once in the time of a session.
"""

from typing import Final

from msgspec import Struct

from mainstem.cluster.image import BrokerImage

_INTERVAL_MS: Final = 1000
# How long after an attempt the next one follows; the last of these from then on.
_PAUSES_MS: Final = (20, 80, 200, 500, _INTERVAL_MS)


class Probe(Struct, frozen=True):
    """An address to dial, and the incarnation of the broker that should be there."""

    broker_id: int
    epoch: int
    host: str
    port: int
    asked_ms: int
    attempt: int


class Probes:
    """Which brokers are to be probed, and when: none twice within a second but for more attempts."""

    def __init__(self, listener: str | None, session_timeout_ms: int) -> None:
        self._listener = listener
        self._session_timeout_ms = session_timeout_ms
        self._wanted: dict[int, tuple[int, int]] = {}  # when, and which attempt it is
        self._last_ms: dict[int, int] = {}
        self._fenced: dict[int, tuple[int, int]] = {}  # in which epoch, and when

    def want(self, broker_id: int, now_ms: int) -> None:
        """Probe the broker as soon as that may be."""
        last_ms = self._last_ms.get(broker_id)
        due_ms = now_ms if last_ms is None else max(now_ms, last_ms + _INTERVAL_MS)
        wanted = self._wanted.get(broker_id)
        if wanted is None or due_ms < wanted[0]:
            self._wanted[broker_id] = due_ms, 0

    def want_again(self, probe: Probe, now_ms: int) -> None:
        """Somebody listened there, or nobody said anything."""
        pause_ms = _PAUSES_MS[min(probe.attempt, len(_PAUSES_MS) - 1)]
        self._wanted.setdefault(probe.broker_id, (now_ms + pause_ms, probe.attempt + 1))

    def deadline_ms(self) -> int | None:
        return min((due_ms for due_ms, _ in self._wanted.values()), default=None)

    def due(self, now_ms: int) -> list[tuple[int, int]]:
        """The brokers that are to be probed now, and which attempt it is."""
        found = [
            (broker_id, attempt) for broker_id, (due_ms, attempt) in self._wanted.items() if due_ms <= now_ms
        ]
        for broker_id, _ in found:
            del self._wanted[broker_id]
            self._last_ms[broker_id] = now_ms
        return found

    def probe(self, broker: BrokerImage, attempt: int, now_ms: int) -> Probe | None:
        """Where to dial: the address that brokers use among each other, or else the first one."""
        endpoint = broker.endpoints.get(self._listener or "") or next(iter(broker.endpoints.values()), None)
        if endpoint is None or not endpoint.host:
            return None
        return Probe(broker.broker_id, broker.epoch, endpoint.host, endpoint.port, now_ms, attempt)

    def may_fence(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Whether the broker may be taken for dead, which counts as done."""
        former_epoch, last_ms = self._fenced.get(broker_id, (epoch, -self._session_timeout_ms))
        if former_epoch == epoch and now_ms < last_ms + self._session_timeout_ms:
            return False
        self._fenced[broker_id] = epoch, now_ms
        return True
