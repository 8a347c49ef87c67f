"""UpdateFeatures (key 57), versions 0 to 2: the cluster's feature levels (KIP-584).

v1 tells safe downgrades from unsafe ones and can only check; v2 gives no result for each feature: all updates
are done, or none.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k57_update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker", "controller", forwarded=True)


async def handle(ctx: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    if not ctx.authorize(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return UpdateFeaturesResponse(error_code=code, error_message=code.message)
    return await ctx.controller.update_features(request, ctx.version)
