"""A source or sink may have a login of its own: everything that a pipeline asks there is asked with it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mainstem.spark.pipeline import Decode, Pipeline, TopicSink, TopicSource
from mainstem.spark.pipeline.brokers import samples
from mainstem.spark.pipeline.brokers.offsets import OffsetsView
from mainstem.spark.pipeline.brokers.source_client import read_options, source_client
from mainstem.spark.pipeline.brokers.topics import check_topics, make_topics
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError
from mainstem.wire import Cluster, WireError, from_kafka_options
from tests.spark.pipeline.shop import Shop
from tests.support.target import Target, unique_name
from tests.wire.secured_kafka import PASSWORD, USER, secured_ports
from tests.wire.token_logins import SECRET, TOKEN, UNWANTED_TOKEN, java_login, without_prefix

pytestmark = pytest.mark.peer

SCRAM = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.username": USER,
    "kafka.sasl.password": PASSWORD,
}
# By the port of the tests' Kafka that wants it.
LOGINS = {"TOKEN": TOKEN, "SASL": SCRAM}


@pytest.fixture(scope="module")
def kafka() -> Target:
    """Where that Kafka wants no login."""
    return Target("kafka", f"127.0.0.1:{secured_ports()['PLAINTEXT']}", Path())


@pytest.fixture(params=list(LOGINS))
def port(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(tmp_path: Path, kafka: Target) -> Iterator[Shop]:
    with Shop(tmp_path, kafka) as running:
        yield running


def filled(shop: Shop, *values: bytes) -> str:
    """A topic with these records."""
    assert isinstance(shop.broker, Target)
    topic = shop.broker.create_topic()
    shop.produce(topic, *values)
    return topic


def source(port: str, topic: str, login: Mapping[str, str] | None = None) -> TopicSource:
    return TopicSource(
        topic=topic,
        bootstrap=f"127.0.0.1:{secured_ports()[port]}",
        decode=Decode(format="json", infer=100),
        options={**(login or LOGINS[port])},
    )


def committed(kafka: Target, group: str, topic: str) -> tuple[int, str | None]:
    with Cluster(from_kafka_options({"bootstrap.servers": kafka.bootstrap_servers})) as cluster:
        found = cluster.offset_fetch(group)[topic, 0]
    return found.offset, found.metadata


def test_topics_are_looked_for(shop: Shop, port: str) -> None:
    topic = filled(shop, b"1")
    pipeline = Pipeline(name="p", sources={"a": source(port, topic)})
    check_topics(pipeline, Places(pipeline, Path()))
    pipeline = Pipeline(name="p", sources={"a": source(port, f"{topic}s")})
    with pytest.raises(PipelineError) as raised:
        check_topics(pipeline, Places(pipeline, Path()))
    (problem,) = raised.value.problems
    assert problem.message == f"there is no topic '{topic}s'"
    assert problem.hint == f"did you mean {topic}?"


def test_a_refused_login_is_told() -> None:
    pipeline = Pipeline(name="p", sources={"a": source("TOKEN", "any", UNWANTED_TOKEN)})
    with pytest.raises(WireError, match=r"does not accept the token of 'alice' .*invalid_token"):
        check_topics(pipeline, Places(pipeline, Path()))


def test_records_to_infer_a_schema_from_are_read(shop: Shop, port: str) -> None:
    topic = filled(shop, b'{"id": 1}', b'{"id": 2}')
    pipeline = Pipeline(name="p", sources={"a": source(port, topic)})
    part = pipeline.sources["a"]
    assert isinstance(part, TopicSource)
    with source_client(pipeline, "a", part, Places(pipeline, Path())) as client:
        assert samples.sample(client, part, 100) == [b'{"id": 1}', b'{"id": 2}']
        assert samples.sample(client, part, 1) == [b'{"id": 2}']


def test_offsets_are_committed_and_the_lag_is_measured(shop: Shop, kafka: Target, port: str) -> None:
    topic, group = filled(shop, b"1", b"2", b"3"), unique_name()
    part = source(port, topic)
    pipeline = Pipeline(name="p", sources={"a": part})
    view = OffsetsView(read_options(pipeline, part, Places(pipeline, Path())), group)
    try:
        for position, records in ((1, 2), (2, 1), (3, 0)):
            view.commit({(topic, 0): position})
            (lag,) = view.lags({(topic, 0): position})
            assert (lag.topic, lag.records) == (topic, records)
            assert lag.seconds is not None
            assert (lag.seconds > 0) is (records > 0)
    finally:
        view.close()
    assert committed(kafka, group, topic) == (3, "mainstem pipeline")


def test_the_topic_of_a_sink_is_made(kafka: Target, port: str) -> None:
    def make(topic: str, login: Mapping[str, str]) -> list[str]:
        bootstrap = f"127.0.0.1:{secured_ports()[port]}"
        sink = TopicSink(topic=topic, source="a", bootstrap=bootstrap, exactly_once=False, options={**login})
        pipeline = Pipeline(name="p", sinks={"out": sink, "again": sink})
        return make_topics(pipeline, Places(pipeline, Path()))

    topic = unique_name()
    assert make(topic, LOGINS[port]) == [topic]
    assert make(topic, LOGINS[port]) == []
    assert topic in kafka.admin().list_topics(timeout=30).topics
    wrong = {"TOKEN": UNWANTED_TOKEN, "SASL": SCRAM | {"kafka.sasl.password": "wrong"}}
    with pytest.raises(WireError, match="not accept"):
        make(topic, wrong[port])


@pytest.mark.timeout(1200)
def test_a_whole_pipeline_runs_with_tokens_exactly_once(
    shop: Shop, kafka: Target, token_endpoint: str
) -> None:
    """Its source, its sink, its dead letters and its offsets, all with the options of Java's client."""
    topic, out, name = filled(shop, b'{"id": 1}', b"broken", b'{"id": 2}'), unique_name(), unique_name()
    text = f"""\
pipeline: {name}
bootstrap: 127.0.0.1:{secured_ports()["TOKEN"]}
kafka: {json.dumps(without_prefix(java_login(token_endpoint, SECRET)))}
checkpoint: ./checkpoint
dead_letters: {out}.dead
sources:
  orders:
    topic: {topic}
    decode: {{format: json, schema: id INT}}
sinks:
  out: {{from: orders, topic: {out}, key: id}}
"""
    (shop.folder / "shop.yaml").write_text(text)
    code, printed = shop.run("--once")
    assert code == 0, printed
    assert SECRET not in printed
    assert sorted(message.value() or b"" for message in shop.read(out)) == [b'{"id":1}', b'{"id":2}']
    assert [message.value() for message in shop.read(f"{out}.dead")] == [b"broken"]
    assert committed(kafka, name, topic) == (3, "mainstem pipeline")
