"""DescribeQuorum (key 55), versions 0 to 2: v1 times of fetches (KIP-836), v2 directory ids (KIP-853)."""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.network.connection import Parked
from mainstem.broker.quorum.asking import ask_quorum
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k55_describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from mainstem.security.authorizer import Operation

API: Final = Api("broker", "controller", forwarded=True)


def handle(ctx: RequestContext, request: DescribeQuorumRequest) -> Any | Parked:
    return ask_quorum(ctx, request, Operation.DESCRIBE, DescribeQuorumResponse)
