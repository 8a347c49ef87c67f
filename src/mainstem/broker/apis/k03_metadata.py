"""Metadata (key 3), versions 0 to 13.

v1 controller and null for all topics, v2 cluster id, v4 auto-creation flag, v7 leader epochs, v8 authorized
operations, v10 topic ids (usable in requests from v12), v13 a top-level error code.
Encoded answers are cached per metadata image. A topic that is created on the fly is in the answer at once.
"""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import is_internal
from mainstem.broker.requests.context import EncodedBody, RequestContext
from mainstem.cluster.image import TopicImage
from mainstem.cluster.topic_names import name_problem
from mainstem.protocol.apis.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ZERO_UUID
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker")
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
        [entry.health.failure is None for entry in ctx.broker.log_manager.dirs].count(False),
    )
    cache = ctx.broker.metadata_cache.answers
    body = cache.get(key)
    if body is None:
        body = ctx.encode(_respond(ctx, request))
        size = sum(map(len, body.chunks))
        if len(cache) >= min(_CACHED_ANSWERS_MAX, _CACHED_BYTES_MAX // (size + 1)):
            cache.clear()
        if size <= _CACHED_BYTES_MAX:
            cache[key] = body
    return body


def _respond(ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
    response = _cluster(ctx, request)
    if request.topics is None or (ctx.version == 0 and not request.topics):
        topics = ctx.broker.image.topics_by_name
        response.topics = [
            _describe(ctx, request, topics[name])
            for name in sorted(topics)
            if ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name)
        ]
    elif _uses_topic_ids_too_early(ctx, request):
        response.topics = [_failed(ctx, t, ErrorCode.INVALID_REQUEST) for t in request.topics]
    else:
        response.topics = [_answer(ctx, request, topic) for topic in request.topics]
    return response


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


def _answer(
    ctx: RequestContext, request: MetadataRequest, asked: MetadataRequestTopic
) -> MetadataResponseTopic:
    image = ctx.broker.image
    if asked.topic_id != ZERO_UUID:
        topic = image.topics_by_id.get(asked.topic_id)
        if topic is None:
            return _failed(ctx, asked, ErrorCode.UNKNOWN_TOPIC_ID)
    else:
        name = asked.name or ""
        topic = image.topics_by_name.get(name)
        if topic is None:
            invalid = name_problem(name) is not None
            code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _failed(ctx, asked, code)
    if not ctx.authorize(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        return _failed(ctx, asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return _describe(ctx, request, topic)


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
        described.partitions.append(
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if part.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=part.partition,
                leader_id=part.leader,
                leader_epoch=part.leader_epoch,
                replica_nodes=list(part.replicas),
                isr_nodes=list(part.isr),
                offline_replicas=ctx.broker.offline_replicas(topic.name, part),
            )
        )
    if request.include_topic_authorized_operations:
        described.topic_authorized_operations = ctx.authorized_operations(ResourceType.TOPIC, topic.name)
    return described
