"""Metadata (key 3), versions 0 to 13.

v1 controller and null for all topics, v2 cluster id, v4 auto-creation flag, v7 leader epochs, v8 authorized
operations, v10 topic ids (usable in requests from v12), v13 a top-level error code.
Encoded answers are cached per metadata image; what they say of each topic is kept longer, until that topic
changes, so that one change among thousands of topics costs what changed. A topic that is created on the fly
is in the answer at once.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import is_internal
from mainstem.broker.requests.context import EncodedBody, RequestContext
from mainstem.cluster.image import NO_LEADER, TopicImage
from mainstem.cluster.topic_names import name_problem
from mainstem.protocol import codec
from mainstem.protocol.apis.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.headers import is_flexible
from mainstem.protocol.primitives import write_uvarint
from mainstem.protocol.uuids import ZERO_UUID
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker")
_KEY: Final = 3
_TOPIC_IDS_SINCE: Final = 12
_CACHED_ANSWERS_MAX: Final = 256
_CACHED_BYTES_MAX: Final = 16 * 1024 * 1024  # about: no more answers of a size than would fill this
_NULL_NAMES_SINCE: Final = 12


def handle(ctx: RequestContext, request: MetadataRequest) -> Any:
    if request.topics is not None and len(request.topics) > 1:
        once = {(topic.name, topic.topic_id): topic for topic in request.topics}
        request.topics = list(once.values())  # a topic that is asked for twice is answered once, as in Kafka
    missing = _topics_to_create(ctx, request)
    if missing:
        return _create_then_answer(ctx, request, missing)
    return _cached(ctx, request)


async def _create_then_answer(
    ctx: RequestContext, request: MetadataRequest, missing: list[str]
) -> EncodedBody:
    await ctx.broker.auto_create_topics(missing)
    return _cached(ctx, request)


def _cached(ctx: RequestContext, request: MetadataRequest) -> EncodedBody:
    names = None if request.topics is None else tuple((t.name, t.topic_id) for t in request.topics)
    key = (
        ctx.version,
        ctx.listener_name,
        ctx.principal,
        names,
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
        _failed_directories(ctx),
    )
    cache = ctx.broker.metadata_cache.answers
    body = cache.get(key)
    if body is None:
        body = EncodedBody([b"".join(_respond(ctx, request))])
        size = len(body.chunks[0])
        if len(cache) >= min(_CACHED_ANSWERS_MAX, _CACHED_BYTES_MAX // (size + 1)):
            cache.clear()
        if size <= _CACHED_BYTES_MAX:
            cache[key] = body
    return body


def _failed_directories(ctx: RequestContext) -> int:
    """They fail before the event loop hears of it."""
    return [entry.health.failure is None for entry in ctx.broker.log_manager.dirs].count(False)


# ---- putting an answer together


def _respond(ctx: RequestContext, request: MetadataRequest) -> list[bytes]:
    """The encoded response, in pieces."""
    if request.topics is None or (ctx.version == 0 and not request.topics):
        by_name = ctx.broker.image.topics_by_name
        topics = _described(
            ctx,
            request,
            [
                by_name[name]
                for name in sorted(by_name)
                if ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name)
            ],
        )
    elif _uses_topic_ids_too_early(ctx, request):
        topics = [_encoded(ctx, _failed(ctx, t, ErrorCode.INVALID_REQUEST)) for t in request.topics]
    else:
        topics = [_answer(ctx, request, topic) for topic in request.topics]
    without_topics = codec.encode(_cluster(ctx, request), ctx.version)
    place = _place_of_topics(ctx.version)
    end = len(without_topics) - place.bytes_behind
    count = write_uvarint(len(topics) + 1) if place.count_bytes == 1 else len(topics).to_bytes(4)
    return [without_topics[: end - place.count_bytes], count, *topics, without_topics[end:]]


class _Place(NamedTuple):
    """Where the topics stand in a response that has none."""

    count_bytes: int  # of their number: 1 in the versions with compact arrays, else 4
    bytes_behind: int


@cache
def _place_of_topics(version: int) -> _Place:
    none = codec.encode(MetadataResponse(), version)
    one = codec.encode(MetadataResponse(topics=[MetadataResponseTopic()]), version)
    differs = next(place for place, (a, b) in enumerate(zip(none, one, strict=False)) if a != b)
    return _Place(1 if is_flexible(_KEY, version) else 4, len(none) - differs - 1)


def _encoded(ctx: RequestContext, topic: MetadataResponseTopic) -> bytes:
    return b"".join(_topic_encoder(ctx.version)(topic))


@cache
def _topic_encoder(version: int) -> Callable[[MetadataResponseTopic], list[Any]]:
    return codec.part_encoder(MetadataResponse, MetadataResponseTopic, version)


def _described(ctx: RequestContext, request: MetadataRequest, topics: list[TopicImage]) -> list[bytes]:
    """Each topic, encoded; as before where it has not changed since."""
    if request.include_topic_authorized_operations:
        return [_encoded(ctx, _describe(ctx, request, topic)) for topic in topics]
    key = ctx.version, ctx.listener_name, _failed_directories(ctx)
    known = ctx.broker.metadata_cache.topic_answers.setdefault(key, {})
    described = []
    for topic in topics:
        found = known.get(topic.name)
        if found is None or found[0] is not topic:
            found = known[topic.name] = topic, _encoded(ctx, _describe(ctx, request, topic))
        described.append(found[1])
    return described


def _uses_topic_ids_too_early(ctx: RequestContext, request: MetadataRequest) -> bool:
    return ctx.version < _TOPIC_IDS_SINCE and any(
        t.name is None or t.topic_id != ZERO_UUID for t in request.topics or ()
    )


def _cluster(ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
    broker = ctx.broker
    response = MetadataResponse(cluster_id=broker.cluster_id, controller_id=broker.node_id)
    response.brokers = [
        MetadataResponseBroker(node_id=e.node_id, host=e.host, port=e.port, rack=e.rack)
        for e in broker.endpoints(ctx.listener_name)
    ]
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ctx.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME)
    return response


def _topics_to_create(ctx: RequestContext, request: MetadataRequest) -> list[str]:
    """The unknown topics that may be created on the fly; one that may not shows its error when it is
    described.
    """
    broker = ctx.broker
    topics = broker.image.topics_by_name
    missing = [t.name for t in request.topics or () if t.name is not None and t.name not in topics]
    if (
        not missing
        or not request.allow_auto_topic_creation
        or not broker.config.get("auto.create.topics.enable")
        or _uses_topic_ids_too_early(ctx, request)
    ):
        return []
    return [
        name
        for name in missing
        if name_problem(name) is None and ctx.authorize(Operation.CREATE, ResourceType.TOPIC, name)
    ]


def _answer(ctx: RequestContext, request: MetadataRequest, asked: MetadataRequestTopic) -> bytes:
    image = ctx.broker.image
    if asked.topic_id != ZERO_UUID:
        topic = image.topics_by_id.get(asked.topic_id)
        if topic is None:
            return _encoded(ctx, _failed(ctx, asked, ErrorCode.UNKNOWN_TOPIC_ID))
    else:
        name = asked.name or ""
        topic = image.topics_by_name.get(name)
        if topic is None:
            invalid = name_problem(name) is not None
            code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _encoded(ctx, _failed(ctx, asked, code))
    if not ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        return _encoded(ctx, _failed(ctx, asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return _described(ctx, request, [topic])[0]


def _failed(ctx: RequestContext, asked: MetadataRequestTopic, code: ErrorCode) -> MetadataResponseTopic:
    name = asked.name
    if name is None and ctx.version < _NULL_NAMES_SINCE:
        name = ""
    return MetadataResponseTopic(error_code=code, name=name, topic_id=asked.topic_id)


def _describe(ctx: RequestContext, request: MetadataRequest, topic: TopicImage) -> MetadataResponseTopic:
    described = MetadataResponseTopic(
        name=topic.name, topic_id=topic.topic_id, is_internal=is_internal(topic.name)
    )
    for part in topic.partitions:
        code = _leader_error(ctx, part.leader)
        described.partitions.append(
            MetadataResponsePartition(
                error_code=code,
                partition_index=part.partition,
                leader_id=NO_LEADER if code else part.leader,
                leader_epoch=part.leader_epoch,
                replica_nodes=list(part.replicas),
                isr_nodes=list(part.isr),
                offline_replicas=ctx.broker.offline_replicas(topic.name, part),
            )
        )
    if request.include_topic_authorized_operations:
        described.topic_authorized_operations = ctx.authorized_operations(ResourceType.TOPIC, topic.name)
    return described


def _leader_error(ctx: RequestContext, leader: int) -> ErrorCode:
    """Why clients of this listener cannot be sent to a partition's leader."""
    broker = ctx.broker.image.brokers.get(leader)
    if broker is None or broker.fenced:
        return ErrorCode.LEADER_NOT_AVAILABLE
    if ctx.listener_name not in broker.endpoints:
        # Known since version 6.
        return ErrorCode.LISTENER_NOT_FOUND if ctx.version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.NONE
