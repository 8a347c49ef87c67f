"""Envelope (key 58), version 0: what a client has asked a broker and the controller decides (KIP-590)."""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.forwarding import envelope
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k58_envelope import EnvelopeRequest, EnvelopeResponse

API: Final = Api("controller")


async def handle(ctx: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    return await envelope.answer(ctx, request)
