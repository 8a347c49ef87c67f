"""ApiVersions, and that what it advertises is exactly what is served."""

import asyncio
import struct
from importlib import import_module
from typing import Any

import msgspec
import pytest

from mainstem.broker.apis import MODULES, declared
from mainstem.broker.network.connection import Connection
from mainstem.config.listeners import Listener
from mainstem.protocol import codec
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.headers import decode_response_header, encode_request_header
from mainstem.protocol.registry import API_KEYS, request_class, response_class
from mainstem.testing.in_process import InProcessBroker
from mainstem.wire.frames import framed
from tests.broker.harness import API_VERSIONS, Client, ConnectionClosedError, connection_of

PRODUCE, FETCH, METADATA = 0, 1, 3
ON_BROKERS = {
    0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 32, 33, 34, 35,
    37, 42, 43, 44, 45, 46, 47, 55, 57, 60, 61, 64, 65, 66, 68, 69, 74, 75, 80, 81,
}  # fmt: skip
# What Apache Kafka 4.3 has on the listeners of controllers, and what of it brokers do not have.
CONTROLLERS_OF_KAFKA = {
    1, 17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49, 50, 51, 52, 53, 54, 55,
    56, 57, 58, 59, 60, 62, 63, 64, 67, 70, 73, 80, 81, 82,
}  # fmt: skip
ONLY_CONTROLLERS_OF_KAFKA = {52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}
ON_CONTROLLERS = CONTROLLERS_OF_KAFKA & set(MODULES)
FORWARDED = {19, 20, 33, 37, 43, 44, 45, 46, 55, 57, 64, 80, 81}


async def advertised(client: Client) -> dict[int, tuple[int, int]]:
    response = await client.call(API_VERSIONS)
    return {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}


async def test_the_listener_of_a_broker_lists_what_it_always_did(client: Client) -> None:
    versions = {key: (API_KEYS[key].min_version, API_KEYS[key].max_version) for key in ON_BROKERS}
    versions[PRODUCE] = (0, versions[PRODUCE][1])  # old librdkafka needs to see it
    assert await advertised(client) == versions


@pytest.fixture
def at_controller(client: Client, broker: InProcessBroker, runner: asyncio.Runner) -> Connection:
    """The broker's end of the client's connection, as if it had come through a controller's listener."""
    runner.run(advertised(client))
    connection = connection_of(broker, client)
    connection.listener = msgspec.structs.replace(connection.listener, name="CONTROLLER", is_controller=True)
    return connection


async def test_the_listener_of_a_controller_lists_what_is_served_there(
    client: Client, at_controller: Connection
) -> None:
    assert set(await advertised(client)) == ON_CONTROLLERS


@pytest.mark.parametrize("key", sorted(ON_BROKERS))
async def test_what_is_not_served_on_a_listener_is_refused_there(
    client: Client, at_controller: Connection, key: int
) -> None:
    client.send(smallest_request(key))
    if key in ON_CONTROLLERS:
        assert isinstance(await client.receive(), response_class(key))
    else:
        assert await client.is_closed_by_broker()


@pytest.mark.parametrize("key", sorted(MODULES))
def test_an_api_is_served_on_the_listeners_that_kafka_has_it_on(key: int) -> None:
    broker, controller = (
        Listener("L", "", 0, "PLAINTEXT", "localhost", 0, is_controller) for is_controller in (False, True)
    )
    assert declared(key).is_served_on(broker) == (key not in ONLY_CONTROLLERS_OF_KAFKA)
    assert declared(key).is_served_on(controller) == (key in CONTROLLERS_OF_KAFKA)


def test_each_module_declares_its_api_in_one_form() -> None:
    """One that can be read without loading it."""
    for key, name in MODULES.items():
        loaded, read = import_module(f"mainstem.broker.apis.{name}").API, declared(key)
        for field in type(loaded).__slots__:
            assert getattr(loaded, field) == getattr(read, field), name


def test_what_is_forwarded_is_what_controllers_decide() -> None:
    assert {key for key in MODULES if declared(key).forwarded} == FORWARDED


def test_only_the_versions_may_be_asked_for_before_authentication() -> None:
    assert {key for key in MODULES if declared(key).before_authentication} == {18}


@pytest.mark.parametrize("version", range(5))
async def test_every_version_lists_the_same_apis(client: Client, version: int) -> None:
    response = await client.call(API_VERSIONS, version)
    assert response.error_code == 0
    assert {entry.api_key for entry in response.api_keys} == set(await advertised(client))


async def test_features_are_those_that_are_served(client: Client, broker: InProcessBroker) -> None:
    response = await client.call(API_VERSIONS)
    supported = {entry.name: (entry.min_version, entry.max_version) for entry in response.supported_features}
    for feature in response.finalized_features:
        low, high = supported[feature.name]
        assert low <= feature.max_version_level <= high
    assert response.finalized_features_epoch >= 0
    assert "metadata.version" in supported


async def test_before_version_4_no_feature_starts_at_level_0(client: Client) -> None:
    response = await client.call(API_VERSIONS, 3)
    assert all(feature.min_version > 0 for feature in response.supported_features)


@pytest.mark.parametrize("version", [5, 99, 32767, -1, -32768])
async def test_a_version_from_the_future_is_answered_in_version_0_with_error_35(
    client: Client, version: int
) -> None:
    client.writer.write(framed([struct.pack(">hhi", 18, version, 4711), b"whatever comes then"]))
    payload = await client.receive_frame()
    correlation_id, position = decode_response_header(18, 0, payload, 0, len(payload))
    response = codec.decode(ApiVersionsResponse, 0, payload[position:])
    assert correlation_id == 4711
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(e.api_key, e.min_version, e.max_version) for e in response.api_keys] == [(18, 0, 4)]
    assert await client.is_served(), "the client asks again on the same connection"


@pytest.mark.parametrize(("name", "software_version"), [("", "1"), ("a", ""), ("-a", "1"), ("a b", "1")])
async def test_an_impossible_software_name_is_an_invalid_request(
    client: Client, name: str, software_version: str
) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    assert (await client.call(request)).error_code == ErrorCode.INVALID_REQUEST


def smallest_request(key: int) -> Any:
    request = request_class(key)()
    if key == PRODUCE:
        request.acks = 1  # with 0 there would be no answer to wait for
    return request


async def test_every_advertised_version_is_answered(client: Client) -> None:
    for key, (low, high) in (await advertised(client)).items():
        for version in range(max(low, API_KEYS[key].min_version), high + 1):
            response = await client.call(smallest_request(key), version)
            assert isinstance(response, response_class(key)), (key, version)


async def test_nothing_else_is_served(client: Client, broker: InProcessBroker) -> None:
    served = await advertised(client)
    for key in range(max(API_KEYS) + 1):
        low, high = served.get(key, (0, -1))
        info = API_KEYS.get(key)
        known = (0, 1) if info is None else (info.min_version, info.max_version)
        refused = [v for v in (*known, low - 1, high + 1) if v >= 0 and not low <= v <= high]
        for version in refused if key != 18 else ():
            async with await Client.connect(broker.port) as asking:
                header = encode_request_header(key, version, 1, None)
                asking.writer.write(framed([header, bytes(64)]))
                assert await asking.is_closed_by_broker(), (key, version)


async def test_produce_is_advertised_from_0_for_old_clients_but_refused_below_3(
    client: Client, broker: InProcessBroker
) -> None:
    assert (await advertised(client))[PRODUCE] == (0, 13)
    for version in range(3):
        async with await Client.connect(broker.port) as old:
            old.writer.write(
                framed([struct.pack(">hhih", 0, version, 1, -1), struct.pack(">hii", 1, 100, 0)])
            )
            with pytest.raises(ConnectionClosedError):
                await old.receive_frame()
