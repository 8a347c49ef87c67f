"""A member of a classic group: what it offers, what it was assigned, and the request with which it waits."""

from collections.abc import Callable, Collection, Iterable

from mainstem.coordinator.effects import Token
from mainstem.protocol.apis.k11_join_group import JoinGroupRequestProtocol

# Names with metadata, the preferred one first, each name once.
Protocols = tuple[tuple[str, bytes], ...]


def protocols_of(offered: Iterable[JoinGroupRequestProtocol]) -> Protocols:
    """A name that is there twice counts once, or its votes would not add up."""
    by_name: dict[str, bytes] = {}
    for protocol in offered:
        by_name.setdefault(protocol.name, bytes(protocol.metadata))
    return tuple(by_name.items())


class ClassicMember:
    """The member itself is the key of its session timer, `on_session_end` what the timer calls."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_token",
        "join_version",
        "member_id",
        "on_session_end",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_token",
    )

    on_session_end: Callable[[int], None]

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.join_token: Token | None = None
        self.join_version = 0
        self.sync_token: Token | None = None
        # Until its first join is answered it cannot send heartbeats.
        self.is_new = False

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it says about itself in this protocol."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise ValueError(f"member {self.member_id} does not support the protocol {protocol_name}")

    def vote(self, candidates: Collection[str]) -> str:
        """The one of these that it prefers."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise ValueError(f"member {self.member_id} supports none of {sorted(candidates)}")

    def may_be_silent(self) -> bool:
        """Whether no heartbeat is expected of it: it waits for us. A new one is expected to ask again."""
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)


class PendingMember:
    """Somebody who got an id and has to join with it; the key of the timer that ends this."""

    __slots__ = ("member_id",)

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
