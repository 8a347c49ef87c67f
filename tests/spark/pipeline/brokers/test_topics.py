"""What a pipeline knows of its cluster: who reads which topic, and which settings its client takes."""

import pytest

from mainstem.spark.pipeline import Pipeline, TopicSource
from mainstem.spark.pipeline.brokers.topics import cluster, topic_readers
from mainstem.spark.pipeline.problems import PipelineError


def test_a_pattern_is_searched_for_as_the_source_does() -> None:
    sources = {"all": TopicSource(pattern="orders"), "exact": TopicSource(pattern="^orders$")}
    readers = {"all": {"a"}, "exact": {"b"}}
    found = topic_readers(sources, readers, ["orders", "eu-orders-1", "payments"])
    assert found == {"orders": {"a", "b"}, "eu-orders-1": {"a"}}


def test_a_setting_that_the_client_does_not_take_is_a_mistake_in_the_file() -> None:
    kafka: dict[str, str | int | float | bool] = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "GSSAPI",
    }
    with pytest.raises(PipelineError) as raised, cluster(Pipeline(name="p", kafka=kafka), "localhost:1"):
        pass
    (problem,) = raised.value.problems
    assert problem.path == ("kafka", "sasl.mechanism")
    assert "the SASL mechanism GSSAPI is not supported" in problem.message
