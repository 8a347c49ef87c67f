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
    CreatePartitionsTopic,
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
        response = await ctx.node.controller.submit(lambda controller: controller.create_partitions(request))
    except KafkaError as error:
        response = CreatePartitionsResponse(results=[_failed(topic, error) for topic in request.topics])
    response.results += [_failed(topic, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) for topic in denied]
    refusal = KafkaError(
        ErrorCode.INVALID_PARTITIONS, "the number of partitions decides who keeps what: it cannot change"
    )
    response.results += [_failed(topic, refusal) for topic in internal]
    return response


def _failed(topic: CreatePartitionsTopic, error: KafkaError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=topic.name, error_code=error.code, error_message=error.message or error.code.message
    )
