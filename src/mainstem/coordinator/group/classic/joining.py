"""One request to join a classic group, and how a member waits with it."""

from dataclasses import dataclass, field

from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.member import ClassicMember, Protocols, protocols_of
from mainstem.coordinator.group.classic.responses import join_error
from mainstem.coordinator.group.state import Client, GroupState
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest
from mainstem.protocol.errors import ErrorCode


@dataclass(slots=True)
class Joining:
    """The request with what its handling needs."""

    request: JoinGroupRequest
    version: int
    client: Client
    token: Token
    now_ms: int
    protocols: Protocols = field(init=False)

    def __post_init__(self) -> None:
        self.protocols = protocols_of(self.request.protocols)

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has one time-out for both."""
        return self.request.rebalance_timeout_ms if self.version else self.request.session_timeout_ms

    @property
    def name(self) -> str:
        """What its member id begins with."""
        instance_id = self.request.group_instance_id
        return self.client.client_id if instance_id is None else instance_id

    def reason(self, what: str) -> str:
        return f"{what}; the client says: {self.request.reason or 'not provided'}"


def wait_with(state: GroupState, join: Joining, group: ClassicGroup, member: ClassicMember) -> None:
    """Let a member wait with this request, and take over what it says about itself."""
    group.set_protocols(member, join.protocols)
    member.rebalance_timeout_ms = join.rebalance_timeout_ms
    member.session_timeout_ms = join.request.session_timeout_ms
    if member.join_token is None:
        group.awaiting_join += 1
    else:
        # It asked twice. Only one can be answered with the generation; the other would wait for ever.
        retry = join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id, member.join_version)
        state.effects.reply(member.join_token, retry)
    member.join_token = join.token
    member.join_version = join.version
