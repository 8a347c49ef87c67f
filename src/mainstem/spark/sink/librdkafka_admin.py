"""Topics through librdkafka, where the own client does not speak the SASL mechanism."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from mainstem.spark.sink.errors import SinkError
from mainstem.spark.sink.librdkafka_reports import Reports
from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.topics import WritableTopic, await_topic, writable_topic
from mainstem.wire import PartitionMetadata, TopicMetadata
from mainstem.wire.errors import error_code


class LibrdkafkaAdmin:
    """Finds and creates topics. A login that is refused is an error at once."""

    def __init__(self, options: SinkOptions, reports: Reports) -> None:
        assert options.librdkafka is not None
        self._options = options
        self._reports = reports
        self._timeout_s = options.client.api_timeout_ms / 1000
        self._request_timeout_s = options.client.request_timeout_ms / 1000
        settings: dict[str, Any] = {**options.librdkafka.client, "error_cb": reports.on_error}
        try:
            self._client = AdminClient(settings)
        except KafkaException as error:
            raise reports.refused_options(error.args[0]) from None

    def find_topic(self, topic: str) -> WritableTopic:
        """SinkError when it does not exist and no broker creates it."""
        metadata = await_topic(
            topic, self._options.client, self._options.metadata_timeout_ms, lambda: self._look(topic)
        )
        return writable_topic(metadata, self._batch_bytes_max(topic))

    def create_topics(self, topics: Iterable[str]) -> list[str]:
        """Create those that are not there, with the broker's defaults; gives the created ones."""
        existing = self._reports.metadata(self._client, None, self._timeout_s).topics
        missing = sorted(set(topics) - set(existing))
        if not missing:
            return []
        new = [NewTopic(name, -1, -1) for name in missing]
        created = self._client.create_topics(new, request_timeout=self._request_timeout_s)
        for name, future in created.items():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    reason = self._reports.text(error.args[0])
                    raise SinkError(f"the topic {name} cannot be created: {reason}") from None
        return missing

    def _look(self, topic: str) -> TopicMetadata:
        """Where a topic is not there, this asks for it as a producer does, and it may be created."""
        found = self._reports.metadata(self._client, topic, self._timeout_s).topics[topic]
        return TopicMetadata(
            topic,
            error_code(found.error.code() if found.error is not None else 0),
            partitions={
                number: PartitionMetadata(partition.leader, -1)
                for number, partition in sorted(found.partitions.items())
            },
        )

    def _batch_bytes_max(self, topic: str) -> int | None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        described = self._client.describe_configs([resource], request_timeout=self._request_timeout_s)
        try:
            entry = described[resource].result().get("max.message.bytes")
        except KafkaException:
            return None  # not everybody may ask
        return int(entry.value) if entry is not None and entry.value else None
