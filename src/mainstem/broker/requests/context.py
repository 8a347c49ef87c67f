"""What a request handler knows about the request besides its body: who asks, from where, in which version.

Handlers authorise every resource through it, and parked requests are answered through it. What the node has
whatever its roles are stands in `server`; `broker` and `controller` are there where the node has the role, so
that what is served on controllers' listeners asks for `server`, and for `controller`, alone.
"""

from typing import TYPE_CHECKING, Any

from mainstem.broker.network.connection import Connection, Parked
from mainstem.security.authorizer import ANONYMOUS, OPERATIONS_OF, Operation, ResourceType

if TYPE_CHECKING:
    from mainstem.broker.broker_role import BrokerRole
    from mainstem.broker.controller_role import ControllerRole
    from mainstem.broker.requests.dispatch import ApiVersion
    from mainstem.broker.shared_server import SharedServer


class EncodedBody:
    """A response body that is encoded already, such as a cached one."""

    __slots__ = ("chunks",)

    def __init__(self, chunks: list[Any]) -> None:
        self.chunks = chunks


class RequestContext:
    """One request in the making of its answer."""

    __slots__ = (
        "api",
        "broker",
        "client_id",
        "connection",
        "correlation_id",
        "principal",
        "server",
        "version",
    )

    def __init__(
        self,
        server: "SharedServer",
        connection: Connection,
        api: "ApiVersion",
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self.server = server
        if server.broker is not None:
            self.broker: BrokerRole = server.broker
        self.connection = connection
        self.api = api
        self.version = api.version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.principal = ANONYMOUS

    @property
    def listener_name(self) -> str:
        return self.connection.listener.name

    @property
    def controller(self) -> "ControllerRole":
        """This node's own, which decides while it is the active one and refuses otherwise."""
        role = self.server.controller_role
        assert role is not None, "what a controller decides is handled on a controller"
        return role

    @property
    def client_host(self) -> str:
        """Where the request came from in the first place."""
        return self.connection.client_host

    def authorize(self, operation: Operation, resource: ResourceType, name: str) -> bool:
        """Whether the client may do this; every handler asks for every resource it touches."""
        return self.server.authorizer.authorize(
            self.principal, self.connection.client_host, operation, resource, name
        )

    def authorized_operations(self, resource: ResourceType, name: str) -> int:
        """The bit field of what the client may do with a resource, for the responses that carry it."""
        bits = 0
        for operation in OPERATIONS_OF[resource]:
            if self.authorize(operation, resource, name):
                bits |= 1 << operation
        return bits

    def reply(self, response: Any) -> None:
        """Answer a request that was parked."""
        if not self.connection.closed:
            reply = self.api.frame(self, response)
            assert not isinstance(reply, Parked)
            self.connection.reply(reply)
