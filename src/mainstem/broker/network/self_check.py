"""After the start: dials the node's own advertised addresses and says which setting to change when that
fails.

Clients dial what Metadata tells them, not what they were given first; a wrong advertised address is the most
common reason why a new broker "does not work".
"""

import asyncio
import logging
from collections.abc import Sequence

from mainstem.broker.network.listener import BoundListener

logger = logging.getLogger(__name__)

_DIAL_SECONDS_MAX = 3.0


async def check_advertised(listeners: Sequence[BoundListener]) -> list[str]:
    """One line for each listener whose advertised address cannot be reached from here."""
    problems = []
    for listener in listeners:
        where = f"{listener.advertised_host}:{listener.advertised_port}"
        try:
            connecting = asyncio.open_connection(listener.advertised_host, listener.advertised_port)
            _, writer = await asyncio.wait_for(connecting, _DIAL_SECONDS_MAX)
        except (OSError, TimeoutError) as error:
            reason = str(error) or "no answer"
            problems.append(
                f"clients are told to connect to {where}, but this machine itself cannot ({reason}); set "
                f"advertised.listeners={listener.name}://HOST:PORT to an address that clients can reach"
            )
            continue
        writer.close()
    for problem in problems:
        logger.warning(problem)
    return problems
