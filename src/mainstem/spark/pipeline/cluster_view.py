"""What a running pipeline asks the brokers: that its topics are there, how far it is behind, and the
offsets that it commits to its group. No Spark here.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from mainstem.protocol.apis.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.records import batch as record_batch
from mainstem.spark.librdkafka_options import needs_librdkafka
from mainstem.spark.pipeline.connector_options import sink_options
from mainstem.spark.pipeline.figures import TopicLag, TopicPartition
from mainstem.spark.pipeline.letters import bytes_max
from mainstem.spark.pipeline.model import Pipeline, TopicSink, TopicSource
from mainstem.spark.pipeline.option_text import as_text
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.problems import PipelineError, Problem, did_you_mean
from mainstem.spark.sink.errors import SinkError
from mainstem.spark.sink.options import parse as parse_sink
from mainstem.spark.source.patterns import matches
from mainstem.wire import (
    EARLIEST,
    LATEST,
    ClientOptions,
    Cluster,
    CommittedOffset,
    InvalidOption,
    KafkaRefusal,
    UnsupportedOption,
    WireError,
    from_kafka_options,
)

_ONE_BATCH_BYTES = 64 * 1024
REQUEST_TIMEOUT_MS = 10_000


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
        hint = "a pipeline does not only read: it looks at its topics by itself, and commits its offsets"
        raise PipelineError([Problem(path, str(error), hint)]) from None


def check_topics(pipeline: Pipeline, places: Places) -> None:
    """PipelineError when topics of the sources are not there."""
    problems: list[Problem] = []
    for name, source in pipeline.sources.items():
        if not isinstance(source, TopicSource) or source.pattern is not None:
            continue
        with cluster(pipeline, places.bootstrap(source.bootstrap)) as client:
            existing = client.metadata(None)
            for topic in source.names:
                if topic not in existing:
                    hint = did_you_mean(topic, [n for n in existing if not n.startswith("__")], "there are")
                    problems.append(Problem(("sources", name, "topic"), f"there is no topic {topic!r}", hint))
    if problems:
        raise PipelineError(problems)


def make_topics(pipeline: Pipeline, places: Places) -> list[str]:
    """Create the topics of the sinks and of dead letters that are not there; gives the created ones."""
    wanted: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)  # by cluster, with their settings
    created: list[str] = []
    for name, sink in pipeline.sinks.items():
        if isinstance(sink, TopicSink):
            options = sink_options(pipeline, sink, places, places.checkpoint_of(name))
            if needs_librdkafka({key.lower().removeprefix("kafka."): text for key, text in options.items()}):
                created += _made_through_librdkafka(sink.topic, options)
            else:
                wanted[places.bootstrap(sink.bootstrap)][sink.topic] = {}
    letters = pipeline.dead_letters
    if letters is not None:
        limit = {"max.message.bytes": str(bytes_max(pipeline.kafka))}
        wanted[places.bootstrap(letters.bootstrap)][letters.topic] = limit
    for bootstrap, topics in wanted.items():
        with cluster(pipeline, bootstrap) as client:
            created += create_topics(client, topics)
    return created


def _made_through_librdkafka(topic: str, options: Mapping[str, str]) -> list[str]:
    """The topic of a sink whose SASL mechanism the own client does not speak."""
    from mainstem.spark.sink.librdkafka_admin import LibrdkafkaAdmin
    from mainstem.spark.sink.librdkafka_reports import Reports

    parsed = parse_sink(options, streaming=True)
    try:
        return LibrdkafkaAdmin(parsed, Reports(parsed)).create_topics([topic])
    except SinkError as error:
        raise WireError(str(error)) from None


def create_topics(client: Cluster, topics: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Create those that are not there, with the broker's defaults for all that is not given."""
    existing = client.metadata(None)
    missing = sorted(set(topics) - set(existing))
    if not missing:
        return []
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                configs=[CreatableTopicConfig(key, value) for key, value in topics[name].items()],
            )
            for name in missing
        ],
        timeout_ms=30_000,
        validate_only=False,
    )
    answer = client.call(client.coordinator("mainstem-pipeline", "group"), request)
    for topic in answer.topics:
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            reason = topic.error_message or ErrorCode(topic.error_code).name
            raise WireError(f"the topic {topic.name} cannot be created: {reason}")
    return missing


def topic_readers(
    sources: Mapping[str, TopicSource], readers: Mapping[str, set[str]], topics: Iterable[str]
) -> dict[str, set[str]]:
    """Which queries read each of these topics, by the sources that name it. `readers` is by source."""
    found: dict[str, set[str]] = defaultdict(set)
    for topic in topics:
        for name, source in sources.items():
            if topic in source.names or (source.pattern is not None and matches(source.pattern, topic)):
                found[topic] |= readers.get(name, set())
    return dict(found)


class ClusterView:
    """Commits a pipeline's offsets on one cluster, and measures how far it is behind there."""

    def __init__(self, pipeline: Pipeline, bootstrap: str, group: str) -> None:
        self._client = Cluster(_client_options(pipeline, bootstrap))
        self._group = group
        self._committed: dict[TopicPartition, int] = {}

    def close(self) -> None:
        self._client.close()

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit what is new. A group with members of its own refuses; then nothing is committed."""
        new = {part: offset for part, offset in positions.items() if self._committed.get(part) != offset}
        if new:
            self._client.offset_commit(
                self._group,
                {part: CommittedOffset(offset, "mainstem pipeline") for part, offset in new.items()},
            )
            self._committed |= new

    def lags(self, positions: Mapping[TopicPartition, int]) -> list[TopicLag]:
        """Records and seconds behind, for each topic."""
        if not positions:
            return []
        ends = self._client.list_offsets(dict.fromkeys(positions, LATEST))
        starts = self._client.list_offsets(dict.fromkeys(positions, EARLIEST))
        behind = {
            part: max(position, starts[part].offset)
            for part, position in positions.items()
            if part in ends and part in starts and ends[part].offset > max(position, starts[part].offset)
        }
        times = self._first_times(behind)
        now_ms = time.time() * 1000
        found: list[TopicLag] = []
        for topic in sorted({topic for topic, _ in positions}):
            parts = [part for part in behind if part[0] == topic]
            ages = [max(0.0, now_ms - times[part]) / 1000 for part in parts if part in times]
            records = sum(ends[part].offset - behind[part] for part in parts)
            seconds = max(ages) if ages else None if parts else 0.0
            found.append(TopicLag(topic, records, seconds))
        return found

    def _first_times(self, behind: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The time of the batch that holds the first unread record of each partition."""
        if not behind:
            return {}
        fetched = self._client.fetch(
            behind, partition_bytes=_ONE_BATCH_BYTES, max_bytes=_ONE_BATCH_BYTES * len(behind), max_wait_ms=10
        )
        found: dict[TopicPartition, int] = {}
        for part, answer in fetched.items():
            if len(answer.records) >= record_batch.HEADER_SIZE:
                header = record_batch.read_header(answer.records)
                if header.base_timestamp >= 0:
                    found[part] = header.base_timestamp
        return found


__all__ = [
    "ClusterView",
    "KafkaRefusal",
    "WireError",
    "check_topics",
    "cluster",
    "create_topics",
    "make_topics",
    "topic_readers",
]
