"""What a pipeline knows of its cluster: who reads which topic, and which settings its client takes."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from mainstem.spark.pipeline import Pipeline, TopicSink, TopicSource
from mainstem.spark.pipeline.cluster_view import cluster, make_topics, topic_readers
from mainstem.spark.pipeline.model import Options
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError
from mainstem.wire import WireError
from tests.support.target import unique_name
from tests.wire.secured_kafka import secured_ports


def test_a_pattern_is_searched_for_as_the_source_does() -> None:
    sources = {"all": TopicSource(pattern="orders"), "exact": TopicSource(pattern="^orders$")}
    readers = {"all": {"a"}, "exact": {"b"}}
    found = topic_readers(sources, readers, ["orders", "eu-orders-1", "payments"])
    assert found == {"orders": {"a", "b"}, "eu-orders-1": {"a"}}


def test_a_setting_that_the_client_does_not_take_is_a_mistake_in_the_file() -> None:
    kafka: dict[str, str | int | float | bool] = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
    }
    with pytest.raises(PipelineError) as raised, cluster(Pipeline(name="p", kafka=kafka), "localhost:1"):
        pass
    (problem,) = raised.value.problems
    assert problem.path == ("kafka", "sasl.mechanism")
    assert "the SASL mechanism OAUTHBEARER is not supported" in problem.message
    assert "commits its offsets" in str(problem.hint)


@pytest.mark.peer
def test_the_topic_of_a_sink_with_a_login_that_only_librdkafka_speaks_is_made() -> None:
    ports = secured_ports()
    login: Options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.oauthbearer.config": "principal=alice",
        "kafka.enable.sasl.oauthbearer.unsecure.jwt": True,
    }

    def make(topic: str, options: Options) -> list[str]:
        bootstrap = f"127.0.0.1:{ports['TOKEN']}"
        sink = TopicSink(topic=topic, source="a", bootstrap=bootstrap, exactly_once=False, options=options)
        pipeline = Pipeline(name="p", sinks={"out": sink})
        return make_topics(pipeline, Places(pipeline, Path()))

    topic = unique_name()
    assert make(topic, login) == [topic]
    assert make(topic, login) == []
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{ports['PLAINTEXT']}"})
    assert topic in admin.list_topics(timeout=30).topics
    with pytest.raises(WireError, match="do not accept the login"):
        make(topic, dict(login) | {"kafka.sasl.oauthbearer.config": "principalClaimName=azp principal=alice"})
