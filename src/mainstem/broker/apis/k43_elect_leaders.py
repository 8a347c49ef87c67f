"""ElectLeaders (key 43), versions 0 to 2: preferred leaders, or leaders that may lack something (KIP-460).

v1 brings the type of the election. The answer comes when the elections are in force here.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker", "controller", forwarded=True)


async def handle(ctx: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    if not ctx.authorize(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        return refuse(request, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    response = await ctx.controller.elect_leaders(request)
    if response.error_code:
        return refuse(request, KafkaError(ErrorCode(response.error_code)))
    return response


def refuse(request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    """Each partition says it too, for version 0 has no error for the whole of it."""
    message = error.message or error.code.message
    results = [
        ReplicaElectionResult(
            wish.topic, [PartitionResult(number, error.code, message) for number in wish.partitions]
        )
        for wish in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=error.code, replica_election_results=results)
