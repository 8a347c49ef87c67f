"""What the parts of the group coordinator share: the groups themselves, the settings, the way out.

A group id is one group of one kind. Every kind can answer the questions of `Group`; offsets belong to a group
id whatever its kind.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from mainstem.config import BrokerConfig
from mainstem.coordinator.effects import Effects
from mainstem.coordinator.group.rebalance_times import RebalanceTimes
from mainstem.coordinator.timers import Timers
from mainstem.coordinator.topics import Topics


class Client(NamedTuple):
    """Who asks, as DescribeGroups shows it; the host with Kafka's leading slash."""

    client_id: str
    host: str


# Asked for every partition of a commit (topic name, topic id, index): KafkaError refuses the whole commit.
PartitionCheck = Callable[[str, bytes, int], None]


class Group(Protocol):
    """One group of any kind, as offsets, listing and deletion see it."""

    group_id: str
    rebalances: RebalanceTimes

    @property
    def members(self) -> Mapping[str, Any]: ...

    @property
    def kind(self) -> str:
        """`classic` or `consumer`, as ListGroups names the type."""

    @property
    def protocol_type(self) -> str: ...

    def state_name(self) -> str:
        """The state as ListGroups and DescribeGroups spell it, e.g. `Stable`."""

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        version: int,
        transactional: bool,
    ) -> PartitionCheck | None:
        """KafkaError when this member may not commit. A check for each partition where that decides."""

    def offsets_committed(self, member_id: str, now_ms: int) -> None:
        """A commit of this member was accepted: a sign of life to a classic group, as Kafka has it."""

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """KafkaError when this member may not read the offsets."""

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None:
        """KafkaError (NON_EMPTY_GROUP) when the group may not be deleted now."""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_expire_after(self) -> int | None:
        """When it became empty, in ms: its offsets age from then on. -1: they age from their own commit
        (those of subscribed topics never). None: none of them expires now, e.g. during a rebalance, and the
        group stays even without any.
        """

    def write_tombstones(self) -> None:
        """Delete the group's own records (not its offsets) through the effects, and the group with them."""


class GroupState:
    """Shared by the parts of one machine."""

    # Set when the parts are put together: makes a group for offsets that were committed without members;
    # ends it, with whoever waits in it, when it could not be written down; and serves members of the
    # classic protocol in a group of the consumer protocol.
    new_simple_group: Callable[[str], Group]
    forget_group: Callable[[Any], None]
    classic_bridge: Any

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        new_id: Callable[[], str],
        group_config: Callable[[str], dict[str, Any]],
    ) -> None:
        self.config = config
        self.topics = topics
        # A new random UUID in Kafka's text form, for member ids.
        self.new_id = new_id
        # The dynamic settings of one group (resource type GROUP): consumer.session.timeout.ms and so on.
        self.group_config = group_config
        self.effects = Effects()
        self.timers = Timers()
        self.groups: dict[str, Group] = {}
