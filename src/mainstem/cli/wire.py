"""The connection of `mainstem.wire` for the few requests that librdkafka has no call for.

Its errors become those by which a subcommand gives up. What librdkafka can ask is asked through `client.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mainstem.cli.client import CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S, unreachable
from mainstem.cli.errors import CommandError
from mainstem.wire import connection
from mainstem.wire.errors import ConnectionLost, NotServed, WireError
from mainstem.wire.options import ClientOptions

_OPTIONS = ClientOptions(
    client_id="mainstem-cli",
    connect_timeout_ms=int(CONNECT_TIMEOUT_S * 1000),
    request_timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
)


class Connection(connection.Connection):
    """One broker; each API is spoken in the newest version that both sides know."""

    def __init__(self, host: str, port: int) -> None:
        with _told():
            super().__init__(host, port, _OPTIONS)

    def call(self, request: Any, **how: Any) -> Any:
        """Send a request and wait for its response."""
        with _told():
            return super().call(request, **how)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except ConnectionLost as error:
        raise unreachable(error.address, error.problem) from None
    except NotServed as error:
        raise CommandError(
            f"the broker at {error.address} does not serve {error.api_name}",
            "this command needs a broker that does: a newer one, or another with -b HOST:PORT",
        ) from None
    except WireError as error:
        raise CommandError(str(error)) from None
