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
_TOPIC_STATES_SINCE: Final = 6


async def handle(ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    asked = request.topics
    if ctx.version < _TOPIC_STATES_SINCE:
        asked = [DeleteTopicState(name=name) for name in request.topic_names]
    denied = [state for state in asked if not _may_delete(ctx, state)]
    if denied:
        request.topics = [state for state in request.topics if state not in denied]
        names = {state.name for state in denied}
        request.topic_names = [name for name in request.topic_names if name not in names]
    try:
        response = await ctx.broker.controller.delete_topics(request, ctx.version)
    except KafkaError as error:
        response = DeleteTopicsResponse(responses=[_failed(s, error) for s in asked if s not in denied])
    response.responses += [
        _failed(state, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) for state in denied
    ]
    return response


def _may_delete(ctx: RequestContext, state: DeleteTopicState) -> bool:
    name = state.name
    if name is None:
        topic = ctx.broker.image.topics_by_id.get(state.topic_id)
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
