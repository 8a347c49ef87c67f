"""CreateTopics (key 19), versions 2 to 7.

v4 defaults of -1, v5 the resulting configuration (KIP-525), v7 topic ids. The controller decides; this
handler authorises, submits, and answers when the partitions are there to be used.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k19_create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker", "controller", forwarded=True)


async def handle(ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    denied: list[CreatableTopic] = []
    if not ctx.authorize(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        denied = [
            t for t in request.topics if not ctx.authorize(Operation.CREATE, ResourceType.TOPIC, t.name)
        ]
        request.topics = [topic for topic in request.topics if topic not in denied]
    try:
        response = await ctx.controller.create_topics(request)
    except KafkaError as error:
        response = refuse(request, error)
    response.topics = [_checked(ctx, result) for result in response.topics]
    response.topics += [
        _failed(topic.name, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) for topic in denied
    ]
    return response


def refuse(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    """The same error for every topic."""
    return CreateTopicsResponse(topics=[_failed(topic.name, error) for topic in request.topics])


def _checked(ctx: RequestContext, result: CreatableTopicResult) -> CreatableTopicResult:
    """Nobody is told that all is well with a topic of which logs could not be made here."""
    if result.error_code == ErrorCode.NONE:
        try:
            if ctx.server.broker is not None:
                ctx.server.broker.replicas.check_made(result.name)
        except KafkaError as error:
            return _failed(result.name, error)
    return result


def _failed(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.message or error.code.message
    )
