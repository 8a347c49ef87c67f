"""What a broker says about itself: versions, features, the cluster, its directories, producer ids."""

import struct

import pytest

from mainstem.protocol import codec
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.apis.k35_describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from mainstem.protocol.apis.k60_describe_cluster import DescribeClusterRequest
from tests.support.scenario import append, new_producer_id
from tests.support.target import Target
from tests.support.transcript import Transcript
from tests.support.wire import ConnectionClosedError, WireClient


def test_every_version_of_api_versions(target: Target) -> None:
    with WireClient(target) as client:
        answers = [client.call(ApiVersionsRequest("wire", "1.0"), version) for version in range(5)]
    listed = [
        {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys} for answer in answers
    ]
    assert all(answer.error_code == 0 for answer in answers)
    assert all(keys == listed[0] for keys in listed)
    assert listed[0][0] == (0, 13)
    assert listed[0][18] == (0, 4)


@pytest.mark.peer
def test_what_mainstem_serves_it_serves_in_kafkas_versions(mainstem: Target, kafka: Target) -> None:
    versions = []
    for target in (mainstem, kafka):
        with WireClient(target) as client:
            answer = client.call(ApiVersionsRequest("wire", "1.0"))
            versions.append({api.api_key: (api.min_version, api.max_version) for api in answer.api_keys})
    served, expected = versions
    assert served == {key: expected[key] for key in served}


def test_api_versions_that_are_too_new_or_odd(target: Target) -> None:
    transcript = Transcript(target, "api_versions_errors")
    for title, version in (("version 5", 5), ("version 99", 99), ("version -1", -1)):
        with WireClient(target) as client:
            client.send_body(18, version, b"")
            try:
                answer = codec.decode(ApiVersionsResponse, 0, client.receive_frame()[4:])
                keys = [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys]
                transcript.note(title, f"error {answer.error_code}, {keys}")
            except ConnectionClosedError:
                transcript.note(title, "closed")
    for title, name in (("no client software name", ""), ("an odd client software name", "a b/ü")):
        with WireClient(target) as client:
            answer = client.call(ApiVersionsRequest(name, "1.0"), 4)
            transcript.note(title, f"error {answer.error_code}, {len(answer.api_keys)} APIs")
    transcript.check()


@pytest.mark.parametrize(
    ("title", "data"),
    [
        ("a negative frame length", struct.pack(">i", -1)),
        ("a frame of 2 GB", struct.pack(">i", 0x7FFFFFFF) + b"x" * 100),
        ("an unknown API", struct.pack(">ihhih", 10, 999, 0, 1, -1)),
        ("an API of controllers", struct.pack(">ihhih", 10, 52, 0, 1, -1)),
        ("a version of Metadata that is too new", struct.pack(">ihhih", 10, 3, 99, 1, -1)),
        ("a request that is cut off", struct.pack(">ihhih", 10, 3, 1, 1, -1)),
        ("a body of noise", struct.pack(">ihhih", 30, 3, 9, 1, -1) + b"\xff" * 20),
        ("another protocol", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ],
)
def test_what_is_no_request_closes_the_connection(target: Target, title: str, data: bytes) -> None:
    with WireClient(target) as client:
        client.send_bytes(data)
        assert client.is_closed_by_broker(), title


def test_describe_cluster(target: Target) -> None:
    transcript = Transcript(target, "describe_cluster")
    host, port = target.address
    transcript.stand_in(host, "host")
    transcript.stand_in(port, "port")
    with WireClient(target) as client:
        transcript.stand_in(client.call(DescribeClusterRequest()).cluster_id, "cluster")
        for version in range(3):
            transcript.note(f"version {version}", client.call(DescribeClusterRequest(), version))
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        transcript.note("with authorized operations", client.call(request))
        transcript.note(
            "controllers, asked on a broker's listener", client.call(DescribeClusterRequest(endpoint_type=2))
        )
        transcript.note("an unknown type of endpoint", client.call(DescribeClusterRequest(endpoint_type=3)))
    transcript.check()


def test_describe_log_dirs(target: Target) -> None:
    transcript = Transcript(target, "describe_log_dirs")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    transcript.stand_in(str(target.log_dir), "directory")
    with WireClient(target) as client:
        append(client, topic, [1])
        for version in range(1, 6):
            request = DescribeLogDirsRequest([DescribableLogDirTopic(topic, [0, 1, 9])])
            answer = client.call(request, version)
            for result in answer.results:
                assert version < 4 or result.total_bytes > result.usable_bytes > 0
                result.total_bytes = result.usable_bytes = -1
                for described in result.topics:
                    described.partitions.sort(key=lambda partition: partition.partition_index)
            transcript.note(f"version {version}", answer)
        answer = client.call(DescribeLogDirsRequest(None))
        assert topic in [described.name for described in answer.results[0].topics]
    transcript.check()


def test_producer_ids_are_never_the_same(target: Target) -> None:
    with WireClient(target) as client:
        ids = [new_producer_id(client) for _ in range(5)]
        assert len(set(ids)) == 5
        for version in range(6):
            answer = client.call(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), version
            )
            assert (answer.error_code, answer.producer_epoch) == (0, 0)
            assert answer.producer_id not in ids
            ids.append(answer.producer_id)


def test_pipelined_requests_are_answered_in_order(target: Target) -> None:
    with WireClient(target) as client:
        for number in range(200):
            client.send(ApiVersionsRequest("wire", "1.0"), number % 5)
        for _ in range(200):
            assert client.receive().error_code == 0
