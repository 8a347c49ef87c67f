"""OffsetFetch (key 9), versions 1 to 10.

v2 reads all topics of a group when none is named; v5 leader epochs; v7 stable offsets only; v8 several
groups; v9 checks the member's epoch (KIP-848); v10 names topics by id. Version 1 has no place for an error of
the group: every partition that was asked for carries it.
"""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ZERO_UUID
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker")
_GROUP_ERROR_VERSION = 2
_SEVERAL_GROUPS_VERSION = 8
_TOPIC_ID_VERSION = 10
# Consumers before 3.9 know no other error after which to look for the coordinator again.
_CLIENT_ERRORS = {ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_COORDINATOR}


def handle(ctx: RequestContext, request: OffsetFetchRequest) -> Any:
    several = ctx.version >= _SEVERAL_GROUPS_VERSION
    groups = request.groups if several else [_single_group(request)]
    fetches = [_GroupFetch(ctx, group, request.require_stable) for group in groups]
    asked = [fetch for fetch in fetches if fetch.answer is None]

    def assemble(answers: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
        for fetch, answer in zip(asked, answers, strict=True):
            fetch.finish(answer)
        groups = [fetch.answer for fetch in fetches if fetch.answer is not None]
        return OffsetFetchResponse(groups=groups) if several else _single_response(groups[0])

    return ctx.broker.groups.gather(ctx, [fetch.part() for fetch in asked], assemble)


class _GroupFetch:
    """What is asked of one group, as far as the client may see it."""

    def __init__(self, ctx: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool) -> None:
        self._ctx = ctx
        self._group = group
        self._require_stable = require_stable
        self._refused: list[OffsetFetchResponseTopics] = []
        self.answer: OffsetFetchResponseGroup | None = None
        if not ctx.authorize(Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
            self.answer = self._error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            return
        self._wanted = OffsetFetchRequestGroup(group.group_id, group.member_id, group.member_epoch)
        self._wanted.topics = None if group.topics is None else self._visible(group.topics)

    def part(self) -> tuple[str, Any, Any]:
        wanted, require_stable = self._wanted, self._require_stable
        return (
            wanted.group_id,
            lambda machine, token, now_ms: machine.offsets.fetch(wanted, token, now_ms, require_stable),
            self._failed,
        )

    def _failed(self, error: ErrorCode) -> OffsetFetchResponseGroup:
        return self._error(_CLIENT_ERRORS.get(error, error))

    def finish(self, answer: OffsetFetchResponseGroup) -> None:
        """Put the coordinator's answer together with what was refused before."""
        self.answer = answer
        if not answer.error_code:
            if self._wanted.topics is None:
                answer.topics = [topic for topic in answer.topics if self._may_show(topic)]
            answer.topics += self._refused

    def _visible(self, topics: list[OffsetFetchRequestTopics]) -> list[OffsetFetchRequestTopics]:
        """Those to ask the coordinator for. It is not asked for what the client may not see."""
        ctx = self._ctx
        visible: list[OffsetFetchRequestTopics] = []
        for topic in topics:
            if ctx.version >= _TOPIC_ID_VERSION:
                image = ctx.broker.image.topics_by_id.get(topic.topic_id)
                topic.name = "" if image is None else image.name
            if not topic.name and ctx.version >= _TOPIC_ID_VERSION:
                self._refused.append(_refused_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            elif not ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
                self._refused.append(_refused_topic(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            else:
                visible.append(topic)
        return visible

    def _may_show(self, topic: OffsetFetchResponseTopics) -> bool:
        """In an answer of all topics. One that has no id cannot be named from version 10 on."""
        image = self._ctx.broker.image.topics_by_name.get(topic.name)
        if image is not None:
            topic.topic_id = image.topic_id
        elif self._ctx.version >= _TOPIC_ID_VERSION:
            return False
        return self._ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)

    def _error(self, error: ErrorCode) -> OffsetFetchResponseGroup:
        answer = OffsetFetchResponseGroup(self._group.group_id)
        if self._ctx.version >= _GROUP_ERROR_VERSION:
            answer.error_code = error
        else:
            answer.topics = [_refused_topic(topic, error) for topic in self._group.topics or ()]
        return answer


def _refused_topic(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [
        OffsetFetchResponsePartitions(index, -1, error_code=error) for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def _single_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The one group of the versions before 8."""
    group = OffsetFetchRequestGroup(request.group_id)
    group.topics = None
    if request.topics is not None:
        group.topics = [
            OffsetFetchRequestTopics(topic.name, ZERO_UUID, topic.partition_indexes)
            for topic in request.topics
        ]
    return group


def _single_response(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    topics = [
        OffsetFetchResponseTopic(
            topic.name,
            [
                OffsetFetchResponsePartition(
                    part.partition_index,
                    part.committed_offset,
                    part.committed_leader_epoch,
                    part.metadata,
                    part.error_code,
                )
                for part in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)
