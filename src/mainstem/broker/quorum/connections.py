"""This node's connections to the other controllers, by their addresses.

Answers come in the order of the requests, and a fetch may wait at the leader: what is asked beside it goes
over a connection of its own. Each is kept for what comes next, and closed when nobody speaks of the address
any more.
"""

import asyncio
from collections.abc import Callable

from mainstem.broker.network.peers import OnAnswer, PeerConnection, PeerOptions
from mainstem.cluster.raft.messages import Destination, Request
from mainstem.cluster.raft.settings import RaftSettings
from mainstem.wire.options import ClientOptions

# A voter may be asked for votes, told of an epoch and fetched from at once; more would be a mistake.
_CONNECTIONS_PER_NODE_MAX = 4
_ADDRESSES_MAX = 64


class _Lane:
    """One connection, and how many of its requests have no answer yet."""

    __slots__ = ("connection", "under_way")

    def __init__(self, connection: PeerConnection) -> None:
        self.connection = connection
        self.under_way = 0


class QuorumConnections:
    """Used from the event loop's thread."""

    def __init__(self, settings: RaftSettings, random: Callable[[], float]) -> None:
        # The core paces itself: a pause before dialing must not outlast one of its attempts.
        self._options = PeerOptions(
            ClientOptions(client_id="raft", connect_timeout_ms=settings.request_timeout_ms),
            reconnect_backoff_ms=settings.retry_backoff_ms,
            reconnect_backoff_max_ms=max(settings.retry_backoff_ms, settings.request_timeout_ms // 4),
        )
        self._timeout_s = settings.request_timeout_ms / 1000
        self._random = random
        self._lanes: dict[tuple[str, int], list[_Lane]] = {}

    def send(
        self, destination: Destination, request: Request, on_answer: OnAnswer, *, version_min: int = 0
    ) -> None:
        """`on_answer` is called once, with the response or the `WireError` that it has none for."""
        lane = self._lane((destination.host, destination.port))
        lane.under_way += 1

        def answered(outcome: object) -> None:
            lane.under_way -= 1
            on_answer(outcome)

        lane.connection.request(request, answered, timeout_s=self._timeout_s, version_min=version_min)

    def _lane(self, address: tuple[str, int]) -> _Lane:
        lanes = self._lanes.pop(address, [])
        self._lanes[address] = lanes  # now the newest
        lane = next((lane for lane in lanes if not lane.under_way), None)
        if lane is None and len(lanes) < _CONNECTIONS_PER_NODE_MAX:
            loop = asyncio.get_running_loop()
            lane = _Lane(PeerConnection(loop, address, self._options, self._random))
            lanes.append(lane)
        while len(self._lanes) > _ADDRESSES_MAX:
            for forgotten in self._lanes.pop(next(iter(self._lanes))):
                forgotten.connection.close()
        return lane or min(lanes, key=lambda lane: lane.under_way)

    def close(self) -> None:
        """Whoever waits for an answer is told that there is none."""
        for lanes in self._lanes.values():
            for lane in lanes:
                lane.connection.close()
        self._lanes.clear()
