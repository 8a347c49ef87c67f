"""A controller makes itself known: where it listens and which features it supports are in the metadata then.

That is done once for each start, as soon as a controller is active that takes it.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from mainstem.broker.metadata.controller_channel import ControllerChannel
from mainstem.cluster.features import SUPPORTED_FEATURES
from mainstem.config.listeners import PROTOCOLS
from mainstem.protocol.apis.k70_controller_registration import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from mainstem.protocol.errors import KafkaError

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

_ATTEMPT_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 1.0


class ControllerRegistration:
    """That of this node; made where there is a listener that others could be told of."""

    def __init__(self, server: "SharedServer") -> None:
        self._server = server
        self._channel = ControllerChannel(server)
        self._task = server.loop.create_task(self._register())

    async def close(self) -> None:
        self._channel.close()
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def _register(self) -> None:
        server = self._server
        request = ControllerRegistrationRequest(
            controller_id=server.node_id,
            incarnation_id=server.randomness.uuid(),
            listeners=[
                Listener(
                    bound.name,
                    bound.advertised_host,
                    bound.advertised_port,
                    PROTOCOLS.index(bound.protocol),
                )
                for bound in server.bound_listeners
                if bound.is_controller
            ],
            features=[Feature(name, level.first, level.last) for name, level in SUPPORTED_FEATURES.items()],
        )
        while True:
            try:
                response = await self._channel.call(
                    request, timeout_s=_ATTEMPT_SECONDS, here=lambda role: role.register_controller(request)
                )
            except KafkaError as error:
                problem = error.message or error.code.message
            else:
                if not response.error_code:
                    return
                problem = response.error_message or f"error {response.error_code}"
            logger.warning("controller %d cannot register: %s", server.node_id, problem)
            await asyncio.sleep(_PAUSE_SECONDS)
