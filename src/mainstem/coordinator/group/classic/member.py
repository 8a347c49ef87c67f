"""A member of a classic group: what it offers, what it was assigned, and the request with which it waits."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

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


@dataclass(eq=False, slots=True)
class ClassicMember:
    """The member itself is the key of its session timer, `on_session_end` what the timer calls."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    join_token: Token | None = None
    join_version: int = 0
    sync_token: Token | None = None
    # Until its first join is answered it cannot send heartbeats.
    is_new: bool = False
    on_session_end: Callable[[int], None] = field(init=False)

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


@dataclass(eq=False, slots=True)
class PendingMember:
    """Somebody who got an id and has to join with it; the key of the timer that ends this."""

    member_id: str
