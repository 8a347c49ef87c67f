"""The one place where a response is delayed by a quota: it fills `throttle_time_ms` and mutes the connection.

No quota is enforced yet, so the time is always zero; handlers never deal with throttling themselves.
"""

from mainstem.broker.network.connection import Connection


class Throttle:
    """Decides how long a client has to wait after this request, in milliseconds."""

    active = False  # whether any quota is set; the short ways around the handlers ask this first

    def time_ms(self, connection: Connection, client_id: str | None) -> int:
        return 0
