"""Free ports for nodes that must know each other's before any of them listens.

They are taken below the ports that systems give to outgoing connections: one of those could otherwise sit on
a node's port while the node restarts.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Iterator

_LOWEST, _HIGHEST = 10_000, 32_000
_TRIES = 1000


class NoFreePortError(Exception):
    """Every port that was tried is taken."""


def free_ports(host: str, count: int, taken: Collection[int] = ()) -> list[int]:
    """So many ports of `host` on which nobody listens; none of those in `taken`."""
    return [port for port, _ in zip(_free(host, taken), range(count), strict=False)]


def is_free(host: str, port: int) -> bool:
    """Whether a node could listen there now."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return True  # no port's fault: the node itself says that there is no such host
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError:
            return False
    return True


def _free(host: str, taken: Collection[int]) -> Iterator[int]:
    seen = set(taken)
    for _ in range(_TRIES):
        port = random.randrange(_LOWEST, _HIGHEST)
        if port not in seen and is_free(host, port):
            seen.add(port)
            yield port
    raise NoFreePortError(f"no free port was found on {host}")
