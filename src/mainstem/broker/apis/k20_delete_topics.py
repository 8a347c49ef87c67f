"""DeleteTopics (key 20), versions 1 to 6: by name, and from v6 also by topic id.

The controller decides; the answer leaves when the partitions are gone and everything parked on them is
answered.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import Operation, ResourceType

API: Final = Api("broker", "controller", forwarded=True)


async def handle(ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    asked = _asked(request)
    denied = [state for state in asked if not _may_delete(ctx, state)]
    if denied:
        request.topics = [state for state in request.topics if state not in denied]
        names = {state.name for state in denied}
        request.topic_names = [name for name in request.topic_names if name not in names]
    try:
        response = await ctx.controller.delete_topics(request, ctx.version)
    except KafkaError as error:
        response = refuse(request, error)
    response.responses += [
        _failed(state, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) for state in denied
    ]
    return response


def refuse(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    """The same error for every topic."""
    return DeleteTopicsResponse(responses=[_failed(state, error) for state in _asked(request)])


def _asked(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """The old versions have names alone."""
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


def _may_delete(ctx: RequestContext, state: DeleteTopicState) -> bool:
    name = state.name
    if name is None:
        topic = ctx.server.image.topics_by_id.get(state.topic_id)
        if topic is None:
            return True  # there is nothing to protect; the controller says that the id is unknown
        name = topic.name
    return ctx.authorize(Operation.DELETE, ResourceType.TOPIC, name)


def _failed(state: DeleteTopicState, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=state.name,
        topic_id=state.topic_id,
        error_code=error.code,
        error_message=error.message or error.code.message,
    )
