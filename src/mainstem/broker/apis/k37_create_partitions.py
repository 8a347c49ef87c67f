"""CreatePartitions (key 37), versions 0 to 3: topics only grow. The controller decides, with a result per
topic. Unlike Kafka it refuses internal topics: what they hold would be looked for in other partitions.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import is_internal
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker", "controller", forwarded=True)


async def handle(ctx: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    denied = [t for t in request.topics if not ctx.authorize(Operation.ALTER, ResourceType.TOPIC, t.name)]
    internal = [topic for topic in request.topics if is_internal(topic.name) and topic not in denied]
    if denied or internal:
        request.topics = [topic for topic in request.topics if topic not in denied + internal]
    try:
        response = await ctx.controller.create_partitions(request)
    except KafkaError as error:
        response = refuse(request, error)
    if not request.validate_only:
        response.results = [_checked(ctx, result) for result in response.results]
    response.results += [
        _failed(topic.name, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) for topic in denied
    ]
    refusal = KafkaError(
        ErrorCode.INVALID_PARTITIONS, "the number of partitions decides who keeps what: it cannot change"
    )
    response.results += [_failed(topic.name, refusal) for topic in internal]
    return response


def refuse(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    """The same error for every topic."""
    return CreatePartitionsResponse(results=[_failed(topic.name, error) for topic in request.topics])


def _checked(ctx: RequestContext, result: CreatePartitionsTopicResult) -> CreatePartitionsTopicResult:
    """Nobody is told that all is well with a topic of which logs could not be made here."""
    if result.error_code == ErrorCode.NONE:
        try:
            if ctx.server.broker is not None:
                ctx.server.broker.replicas.check_made(result.name)
        except KafkaError as error:
            return _failed(result.name, error)
    return result


def _failed(name: str, error: KafkaError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=error.code, error_message=error.message or error.code.message
    )
