"""After the start: asks the node itself at its own advertised addresses, and says which setting to change
when that fails.

Clients dial what Metadata tells them, not what they were given first; a wrong advertised address is the most
common reason why a new broker "does not work". Where they are told the very loopback address that is listened
at, there is nothing to find out, and the client that would ask is not even loaded.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from mainstem.broker.network.listener import BoundListener

logger = logging.getLogger(__name__)

_ANSWER_SECONDS_MAX = 10.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


async def check_advertised(
    listeners: Sequence[BoundListener], loop: asyncio.AbstractEventLoop, fraction: Callable[[], float]
) -> list[str]:
    """One line for each listener whose advertised address cannot be reached from here."""
    doubtful = [listener for listener in listeners if not _is_sure(listener)]
    if not doubtful:
        return []
    # Not at import: the node serves its clients first.
    from mainstem.broker.network.peers import PeerConnection, PeerOptions
    from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest
    from mainstem.wire.errors import ConnectionLost, WireError

    problems = []
    for listener in doubtful:
        address = listener.advertised_host, listener.advertised_port
        peer = PeerConnection(loop, address, PeerOptions(), fraction)
        try:
            await peer.call(ApiVersionsRequest("mainstem", "self-check"), timeout_s=_ANSWER_SECONDS_MAX)
        except WireError as error:
            reason = error.problem if isinstance(error, ConnectionLost) else error
            problems.append(
                f"clients are told to connect to {peer.address}, but this machine itself cannot "
                f"({reason}); set advertised.listeners={listener.name}://HOST:PORT to an address that "
                "clients can reach"
            )
        finally:
            peer.close()
    for problem in problems:
        logger.warning(problem)
    return problems


def _is_sure(listener: BoundListener) -> bool:
    listened_at = listener.host, listener.port
    return listener.host in _LOOPBACK and listened_at == (listener.advertised_host, listener.advertised_port)
