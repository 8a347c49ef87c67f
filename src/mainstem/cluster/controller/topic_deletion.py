"""DeleteTopics: by name or, from version 6 on, by id.

A topic that one request names twice, or both by name and by id, is not deleted: the client is confused about
what it asks for, and a deletion cannot be taken back.
"""

from collections import Counter

from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import MetadataRecord, RemoveTopicRecord
from mainstem.config import BrokerConfig
from mainstem.protocol.apis.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ZERO_UUID, uuid_to_text

_DELETION_DISABLED_SINCE = 3


def delete_topics(
    image: MetadataImage, config: BrokerConfig, request: DeleteTopicsRequest, api_version: int
) -> tuple[DeleteTopicsResponse, list[MetadataRecord]]:
    """The answers, and the records that remove the topics."""
    # Older versions carry only names; the two lists are never both filled.
    wishes = [DeleteTopicState(name=name) for name in request.topic_names] + request.topics
    if not config.get("delete.topic.enable"):
        return DeleteTopicsResponse(responses=[_disabled(wish, api_version) for wish in wishes]), []
    results = _Deletion(image, wishes).results()
    removed: list[MetadataRecord] = [
        RemoveTopicRecord(result.topic_id) for result in results if result.error_code == ErrorCode.NONE
    ]
    return DeleteTopicsResponse(responses=results), removed


class _Deletion:
    """One request: its wishes, looked at together."""

    def __init__(self, image: MetadataImage, wishes: list[DeleteTopicState]) -> None:
        self._image = image
        self._wishes = wishes
        self._names = Counter(w.name for w in wishes if w.name is not None and w.topic_id == ZERO_UUID)
        self._ids = Counter(w.topic_id for w in wishes if w.name is None and w.topic_id != ZERO_UUID)

    def results(self) -> list[DeletableTopicResult]:
        results = [_unclear(w) for w in self._wishes if (w.name is None) == (w.topic_id == ZERO_UUID)]
        results += [self._by_name(name, times) for name, times in self._names.items()]
        by_id = [self._by_id(topic_id, times) for topic_id, times in self._ids.items()]
        return results + [result for result in by_id if result is not None]

    def _by_name(self, name: str, times: int) -> DeletableTopicResult:
        if times > 1:
            return _refused(name, ZERO_UUID, f"Topic {name} is in the request {times} times.")
        topic = self._image.topics_by_name.get(name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return DeletableTopicResult(name, ZERO_UUID, code, f"There is no topic {name}.")
        if self._ids[topic.topic_id] == 1:
            return _refused(name, topic.topic_id, f"Topic {name} is in the request by its id as well.")
        return DeletableTopicResult(name, topic.topic_id)

    def _by_id(self, topic_id: bytes, times: int) -> DeletableTopicResult | None:
        text = uuid_to_text(topic_id)
        if times > 1:
            return _refused(None, topic_id, f"Topic id {text} is in the request {times} times.")
        topic = self._image.topics_by_id.get(topic_id)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
            return DeletableTopicResult(None, topic_id, code, f"There is no topic with the id {text}.")
        if self._names[topic.name] == 1:
            return None  # answered under the name
        return DeletableTopicResult(topic.name, topic_id)


def _refused(name: str | None, topic_id: bytes, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(name, topic_id, ErrorCode.INVALID_REQUEST, message)


def _unclear(wish: DeleteTopicState) -> DeletableTopicResult:
    if wish.name is None:
        return _refused(None, ZERO_UUID, "Neither the name nor the id of a topic was given.")
    return _refused(
        wish.name, wish.topic_id, f"Topic {wish.name} was given with an id as well; give only one."
    )


def _disabled(wish: DeleteTopicState, api_version: int) -> DeletableTopicResult:
    # Version 3 brought the code of its own.
    known = api_version >= _DELETION_DISABLED_SINCE
    code = ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST
    return DeletableTopicResult(
        wish.name, wish.topic_id, code, "Topics cannot be deleted here: delete.topic.enable is false."
    )
