"""BrokerHeartbeat: brokers come, go, and say which of their directories have failed.

A fenced broker leads nothing and is in sync with nothing; one that shuts down hands over what it leads first
(KIP-841), and may end when everybody who can lead has seen that.
"""

from collections.abc import Sequence
from enum import Enum

from mainstem.cluster.controller.contacts import Contact
from mainstem.cluster.image import BrokerImage
from mainstem.cluster.records import BrokerRegistrationChangeRecord
from mainstem.cluster.records.versions import has_cordoned_directories, has_directories
from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

_FENCE = 1
_UNFENCE = -1
_SHUTTING_DOWN = 1


class BrokerState(Enum):
    FENCED = "neither leads nor follows"
    UNFENCED = "takes part"
    CONTROLLED_SHUTDOWN = "hands over what it leads"
    SHUTDOWN_NOW = "may end"

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


def current_state(broker: BrokerImage) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def next_state(
    broker: BrokerImage,
    contact: Contact,
    request: BrokerHeartbeatRequest,
    *,
    leads: bool,
    others_offset: int | None,
) -> BrokerState:
    """What the broker becomes by what it says. `others_offset` is what all have applied that can lead."""
    state = current_state(broker)
    if state is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        if not request.want_fence and is_caught_up(broker, request):
            return BrokerState.UNFENCED
        return state
    if state is BrokerState.UNFENCED:
        if request.want_fence:
            return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
        if request.want_shut_down:
            return BrokerState.CONTROLLED_SHUTDOWN if leads else BrokerState.SHUTDOWN_NOW
        return state
    if leads or contact.shutdown_offset < 0:
        return state
    all_have_seen = others_offset is None or others_offset >= contact.shutdown_offset
    return BrokerState.SHUTDOWN_NOW if all_have_seen else state


def is_caught_up(broker: BrokerImage, request: BrokerHeartbeatRequest) -> bool:
    """A broker knows enough of the cluster to serve it when it has seen its own registration."""
    return request.current_metadata_offset >= broker.epoch


def state_record(broker: BrokerImage, state: BrokerState) -> BrokerRegistrationChangeRecord | None:
    """The record that brings a broker into a state, or None when it is in it."""
    if state.is_fenced:
        return None if broker.fenced else fence_record(broker)
    record = BrokerRegistrationChangeRecord(broker.broker_id, broker.epoch)
    if state is BrokerState.UNFENCED:
        record.fenced = _UNFENCE
        return record if broker.fenced else None
    record.in_controlled_shutdown = _SHUTTING_DOWN
    return None if broker.in_controlled_shutdown else record


def fence_record(broker: BrokerImage) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker.broker_id, broker.epoch, fenced=_FENCE)


def directories_record(
    broker: BrokerImage, level: int, offline: Sequence[bytes], cordoned: Sequence[bytes] | None
) -> BrokerRegistrationChangeRecord | None:
    """What is different about the directories of a broker: those that have failed are its own no more."""
    record = BrokerRegistrationChangeRecord(broker.broker_id, broker.epoch)
    online = [directory for directory in broker.log_dirs if directory not in offline]
    # A broker without any directory is about to end, and a record cannot say that it has none.
    failed = has_directories(level) and 0 < len(online) < len(broker.log_dirs)
    if failed:
        record.log_dirs = online
    is_known = cordoned is None or list(cordoned) == list(broker.cordoned_log_dirs or ())
    if has_cordoned_directories(level) and not is_known:
        record.cordoned_log_dirs = list(cordoned or ())
    return record if failed or record.cordoned_log_dirs is not None else None


def heartbeat_response(
    broker: BrokerImage, request: BrokerHeartbeatRequest, state: BrokerState
) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(
        is_caught_up=is_caught_up(broker, request),
        is_fenced=state.is_fenced,
        should_shut_down=state is BrokerState.SHUTDOWN_NOW,
    )
