"""One connection to each other broker, for what brokers ask each other now and then.

Where a broker is, the metadata says, by the listener that brokers use among themselves; when that changes,
the next one who asks gets a new connection, and what waits on the old one fails.
"""

from typing import TYPE_CHECKING

from mainstem.broker.network.peers import PeerConnection, PeerOptions
from mainstem.config.listeners import inter_broker_listener
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.wire.errors import Address
from mainstem.wire.options import ClientOptions

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer


class PeerPool:
    """The connections of one node, made when they are wanted first."""

    def __init__(self, server: "SharedServer") -> None:
        self._server = server
        self._listener = inter_broker_listener(server.config, server.bound_listeners)
        self._peers: dict[int, tuple[Address, PeerConnection]] = {}

    def address(self, node_id: int) -> Address:
        """Where the broker is; KafkaError (BROKER_NOT_AVAILABLE) when the metadata does not say."""
        broker = self._server.image.brokers.get(node_id)
        endpoint = None if broker is None else broker.endpoints.get(self._listener)
        if endpoint is None:
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"broker {node_id} is not registered with a listener {self._listener}",
            )
        return endpoint.host, endpoint.port

    def peer(self, node_id: int) -> PeerConnection:
        """See `SharedServer.peer`."""
        address = self.address(node_id)
        known = self._peers.get(node_id)
        if known is not None:
            if known[0] == address:
                return known[1]
            known[1].close()
        server = self._server
        options = PeerOptions(ClientOptions(client_id=f"broker-{server.node_id}"))
        peer = PeerConnection(server.loop, address, options, server.randomness.fraction)
        self._peers[node_id] = address, peer
        return peer

    def close(self) -> None:
        for _, peer in self._peers.values():
            peer.close()
        self._peers.clear()
