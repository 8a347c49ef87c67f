"""Whether somebody listens at an address: dialled once, and hung up at once."""

import asyncio
import socket
from typing import Final

_WITHIN_SECONDS: Final = 2.0


async def is_refused(loop: asyncio.AbstractEventLoop, host: str, port: int) -> bool:
    """Whether the host itself says that nobody listens there. Silence, and whatever else keeps an answer
    away, is not that.
    """
    try:
        async with asyncio.timeout(_WITHIN_SECONDS):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers = [await _refuses(loop, family, address) for family, _, _, _, address in found]
    except (OSError, TimeoutError):
        return False
    return bool(answers) and all(answers)


async def _refuses(loop: asyncio.AbstractEventLoop, family: int, address: tuple[object, ...]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as dialled:
        dialled.setblocking(False)
        try:
            await loop.sock_connect(dialled, address)
        except ConnectionRefusedError:
            return True
    return False
