"""The topics of a pipeline: that those of its sources are there, and that those of its sinks are made.

No Spark here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from mainstem.protocol.errors import ErrorCode
from mainstem.spark.pipeline.brokers.source_client import source_client
from mainstem.spark.pipeline.dead_letters.headers import bytes_max
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.parts import as_text
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError, Problem, did_you_mean
from mainstem.spark.pipeline.sinks.topic import TopicSink
from mainstem.spark.pipeline.sources.topic import TopicSource
from mainstem.spark.sink.options import parse as parse_sink
from mainstem.wire import (
    ClientOptions,
    Cluster,
    InvalidOption,
    KafkaRefusal,
    NewTopic,
    UnsupportedOption,
    WireError,
    from_kafka_options,
)


@contextmanager
def cluster(pipeline: Pipeline, bootstrap: str) -> Iterator[Cluster]:
    """A client for one of the pipeline's clusters."""
    with Cluster(_client_options(pipeline, bootstrap)) as client:
        yield client


def _client_options(pipeline: Pipeline, bootstrap: str) -> ClientOptions:
    """A setting that this client does not take is a mistake in the file; no broker would change that."""
    options = as_text(pipeline.kafka)
    try:
        return from_kafka_options(options | {"bootstrap.servers": bootstrap})
    except (UnsupportedOption, InvalidOption) as error:
        named = next((key for key in options if key in str(error)), None)
        path = ("kafka", named) if named is not None else ("kafka",)
        raise PipelineError([Problem(path, str(error))]) from None


def check_topics(pipeline: Pipeline, places: Places) -> None:
    """PipelineError when topics of the sources are not there."""
    problems: list[Problem] = []
    for name, source in pipeline.sources.items():
        if not isinstance(source, TopicSource) or source.pattern is not None:
            continue
        with source_client(pipeline, name, source, places) as client:
            existing = client.topics(source.names)
            for topic in source.names:
                if topic not in existing:
                    hint = did_you_mean(topic, client.topics(None), "there are")
                    problems.append(Problem(("sources", name, "topic"), f"there is no topic {topic!r}", hint))
    if problems:
        raise PipelineError(problems)


def make_topics(pipeline: Pipeline, places: Places) -> list[str]:
    """Create the topics of the sinks and of dead letters that are not there; gives the created ones."""
    created: list[str] = []
    for name, sink in pipeline.sinks.items():
        if isinstance(sink, TopicSink):
            options = sink.options_of(pipeline, places, places.checkpoint_of(name))
            # With the login that the sink itself is given.
            with Cluster(parse_sink(options, streaming=True).client) as client:
                created += create_topics(client, {sink.topic: {}})
    dead_letters = pipeline.dead_letters
    if dead_letters is not None:
        limit = {"max.message.bytes": str(bytes_max(pipeline.kafka))}
        with cluster(pipeline, places.bootstrap(dead_letters.bootstrap)) as client:
            created += create_topics(client, {dead_letters.topic: limit})
    return list(dict.fromkeys(created))


def create_topics(client: Cluster, topics: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Create those that are not there, with the broker's defaults for all that is not given."""
    existing = client.metadata(None)
    missing = sorted(set(topics) - set(existing))
    if not missing:
        return []
    answers = client.create_topics(NewTopic(name, configs=topics[name]) for name in missing)
    for name, answer in answers.items():
        if isinstance(answer, KafkaRefusal) and answer.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise WireError(f"the topic {name} cannot be created: {answer.message}")
    return missing


def topic_readers(
    sources: Mapping[str, TopicSource], readers: Mapping[str, set[str]], topics: Iterable[str]
) -> dict[str, set[str]]:
    """Which queries read each of these topics, by the sources that name it. `readers` is by source."""
    found: dict[str, set[str]] = defaultdict(set)
    for topic in topics:
        for name, source in sources.items():
            if source.reads(topic):
                found[topic] |= readers.get(name, set())
    return dict(found)
