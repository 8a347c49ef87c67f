"""Envelopes at a controller's listener: what brokers hand on is answered as if its client had come itself."""

import socket
from typing import Any

import pytest

from mainstem.protocol import codec, registry
from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreateTopicsRequest
from mainstem.protocol.apis.k46_list_partition_reassignments import ListPartitionReassignmentsRequest
from mainstem.protocol.apis.k58_envelope import EnvelopeRequest, EnvelopeResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.headers import decode_response_header, encode_request_header
from mainstem.security.authorizer import ANONYMOUS, AllowAll, Operation, ResourceType
from mainstem.security.principal_data import encode_principal
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import MakeBroker
from tests.broker.harness import Client, unique_name

CORRELATION_ID = 4711
CLIENT = ("User:alice", "10.1.2.3")


class Recorded(AllowAll):
    """Remembers who has asked for what, and denies one operation."""

    def __init__(self, denied: Operation | None = None) -> None:
        self.asked: set[tuple[str, str, Operation]] = set()
        self.denied = denied

    def authorize(
        self, principal: str, host: str, operation: Operation, resource: ResourceType, name: str
    ) -> bool:
        self.asked.add((principal, host, operation))
        return operation is not self.denied


async def combined(make_broker: MakeBroker) -> tuple[InProcessBroker, Client]:
    """A node with a listener for controllers, and a connection there."""
    broker = await make_broker({"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"})
    (port,) = (bound.port for bound in broker.node.server.bound_listeners if bound.is_controller)
    return broker, await Client.connect(port)


def wrapped(request: Any, **changes: Any) -> EnvelopeRequest:
    key = request.SCHEMA.api_key
    version = registry.API_KEYS[key].max_version
    header = encode_request_header(key, version, CORRELATION_ID, "somebody")
    fields: dict[str, Any] = {
        "request_data": header + codec.encode(request, version),
        "request_principal": encode_principal(CLIENT[0]),
        "client_host_address": socket.inet_aton(CLIENT[1]),
    }
    return EnvelopeRequest(**fields | changes)


def creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest([CreatableTopic(name, 1, 1)])


def unwrapped(response: EnvelopeResponse, request: Any) -> Any:
    """The response that the client of `request` would read."""
    assert response.error_code == ErrorCode.NONE
    key = request.SCHEMA.api_key
    version = registry.API_KEYS[key].max_version
    data = bytes(response.response_data or b"")
    correlation_id, position = decode_response_header(key, version, data, 0, len(data))
    assert correlation_id == CORRELATION_ID
    return codec.decode(registry.response_class(key), version, data[position:])


async def test_a_forwarded_request_is_answered_with_its_own_header(make_broker: MakeBroker) -> None:
    broker, client = await combined(make_broker)
    request = creation(unique_name())
    async with client:
        (made,) = unwrapped(await client.call(wrapped(request)), request).topics
        assert made.error_code == ErrorCode.NONE
        (again,) = unwrapped(await client.call(wrapped(request)), request).topics
        assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        listing = ListPartitionReassignmentsRequest()
        assert unwrapped(await client.call(wrapped(listing)), listing).topics == []
    assert made.name in broker.node.image.topics_by_name


async def test_it_is_authorised_as_its_client_and_the_envelope_as_its_broker(
    make_broker: MakeBroker,
) -> None:
    broker, client = await combined(make_broker)
    rules = broker.node.server.authorizer = Recorded(denied=Operation.CREATE)
    request = creation(unique_name())
    async with client:
        (refused,) = unwrapped(await client.call(wrapped(request)), request).topics
        assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert rules.asked == {
            (ANONYMOUS, "127.0.0.1", Operation.CLUSTER_ACTION),
            (*CLIENT, Operation.CREATE),
        }
        broker.node.server.authorizer = Recorded(denied=Operation.CLUSTER_ACTION)
        response = await client.call(wrapped(request))
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert response.response_data is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"request_data": b""}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\x00\x13\x00\x07\x00\x00\x00\x01\xff\xff\x00\xff"}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\x00\x13\x00\x63\x00\x00\x00\x01\xff\xff"}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff"}, ErrorCode.INVALID_REQUEST),
        ({"request_principal": b""}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\x00\x00\x05User"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"client_host_address": b"\x7f\x00\x00"}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_is_no_request_of_a_client_is_refused(
    make_broker: MakeBroker, changes: dict[str, Any], code: ErrorCode
) -> None:
    _, client = await combined(make_broker)
    async with client:
        response = await client.call(wrapped(creation(unique_name()), **changes))
        assert response.error_code == code
        assert response.response_data is None
        assert await client.is_served(), "the connection of the broker stays"


async def test_what_is_not_for_the_controller_is_refused(make_broker: MakeBroker) -> None:
    _, client = await combined(make_broker)
    async with client:
        response = await client.call(wrapped(MetadataRequest(topics=None)))
        assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_an_address_of_the_other_family_is_understood(make_broker: MakeBroker) -> None:
    broker, client = await combined(make_broker)
    rules = broker.node.server.authorizer = Recorded()
    request = creation(unique_name())
    async with client:
        address = socket.inet_pton(socket.AF_INET6, "2001:db8::7")
        unwrapped(await client.call(wrapped(request, client_host_address=address)), request)
    assert (CLIENT[0], "2001:db8::7", Operation.CREATE) in rules.asked


async def test_clients_send_no_envelopes(make_broker: MakeBroker) -> None:
    broker, client = await combined(make_broker)
    async with client, await Client.connect(broker.port) as elsewhere:
        elsewhere.send(wrapped(creation(unique_name())))
        assert await elsewhere.is_closed_by_broker()
