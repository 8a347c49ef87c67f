"""The peer itself: it starts once, answers, and its tools run."""

import pytest

from tests.support.kafka_peer import kafka_tool, shared_kafka

pytestmark = pytest.mark.peer


def test_a_tool_sees_the_shared_broker() -> None:
    kafka = shared_kafka()
    assert shared_kafka() == kafka
    output = kafka_tool("ClusterTool", "cluster-id", "--bootstrap-server", kafka.bootstrap_servers).check()
    assert output.startswith("Cluster ID: ")
