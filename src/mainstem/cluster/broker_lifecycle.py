"""The life of a broker in its cluster, from its registration to the end of its controlled shutdown.

Sans-I/O: an event and the time in, effects out. One request to the controller is under way at a time; its
answer, or that there was none, comes back as an event. What a request says of the broker itself (addresses,
features, the metadata that it has applied) is filled in by whoever sends it.

A broker registers, beats until the controller finds its metadata caught up, has its logs loaded meanwhile,
wants to be unfenced when that is done, and serves clients once it is. A controller that does not know the
broker (any more) has it register again; one that was never let in gives up after a while. Before it ends it
asks to be let go, so that its leaderships move away first; when no controller answers for a while, or the
leave takes too long, it ends all the same.
"""

from enum import Enum, auto
from typing import Final

from msgspec import Struct

from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatResponse
from mainstem.protocol.errors import ErrorCode

_SOON_MS: Final = 100  # between heartbeats while something is waited for that the controller decides
_RETRY_MS: Final = 250  # after a request that has failed
# How long a stop waits without any answer, and how long at all.
_SILENCE_AT_STOP_MS: Final = 2_500
_STOP_MS_MAX: Final = 30_000

# The controller does not have this broker, or another start of it.
_REGISTER_AGAIN: Final = (ErrorCode.BROKER_ID_NOT_REGISTERED, ErrorCode.STALE_BROKER_EPOCH)
# What another attempt would not change.
_HOPELESS: Final = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_REGISTRATION,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_REQUEST,
)


class BrokerState(Enum):
    """Kafka's names."""

    NOT_RUNNING = auto()
    STARTING = auto()
    RECOVERY = auto()
    RUNNING = auto()
    PENDING_CONTROLLED_SHUTDOWN = auto()
    SHUTTING_DOWN = auto()


# ---- events


class Started(Struct, frozen=True):
    """The broker can be registered. `previous_epoch` is that of its last clean stop, -1 without one."""

    previous_epoch: int = -1


class Registered(Struct, frozen=True):
    """The controller has answered the registration."""

    error: ErrorCode
    epoch: int = -1


class Beaten(Struct, frozen=True):
    """The controller has answered the heartbeat."""

    response: BrokerHeartbeatResponse


class Unanswered(Struct, frozen=True):
    """Nobody has answered the request that is under way."""


class Published(Struct, frozen=True):
    """The broker has applied the metadata up to this offset."""

    offset: int


class ReadyToServe(Struct, frozen=True):
    """The logs are loaded, and changes of the metadata are acted on."""


class LogDirsChanged(Struct, frozen=True):
    """Log directories have failed, or take (no) new replicas (any more): the controller is told at once."""


class LeaderChanged(Struct, frozen=True):
    """Another controller is active: it knows nothing yet of when this broker was last heard of."""


class StopAsked(Struct, frozen=True):
    """The broker is to end."""


class TimePassed(Struct, frozen=True):
    """`deadline_ms` is reached."""


Event = (
    Started
    | Registered
    | Beaten
    | Unanswered
    | Published
    | ReadyToServe
    | LogDirsChanged
    | LeaderChanged
    | StopAsked
    | TimePassed
)

# ---- effects


class Register(Struct, frozen=True):
    """Send a BrokerRegistration."""

    previous_epoch: int


class Beat(Struct, frozen=True):
    """Send a BrokerHeartbeat."""

    epoch: int
    want_fence: bool
    want_shut_down: bool


class CaughtUp(Struct, frozen=True):
    """The logs can be loaded by the metadata that is there now."""


class Unfenced(Struct, frozen=True):
    """Clients can be served: said once."""


class Refused(Struct, frozen=True):
    """The broker can be no part of this cluster."""

    error: ErrorCode


class GivenUp(Struct, frozen=True):
    """No controller has let the broker in for so long that it ends."""


class Ended(Struct, frozen=True):
    """The broker may stop. Without `granted` it stops although leaderships may still be here."""

    granted: bool


Effect = Register | Beat | CaughtUp | Unfenced | Refused | GivenUp | Ended


class BrokerLifecycle:
    """One broker. `deadline_ms` is when it wants to hear that time has passed; None when it need not."""

    def __init__(self, heartbeat_interval_ms: int, registration_timeout_ms: int) -> None:
        self.state = BrokerState.NOT_RUNNING
        self.epoch = -1
        self.deadline_ms: int | None = None
        self._interval_ms = heartbeat_interval_ms
        self._registration_timeout_ms = registration_timeout_ms
        self._register_until_ms = 0
        self._refusals = 0  # of registrations, one after another
        self._previous_epoch = -1
        self._registered = False
        self._ready = False
        self._under_way = False
        self._news = False  # something to tell as soon as the request under way is answered
        self._published = -1
        self._stopping_since_ms = 0
        self._heard_ms = 0

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """What follows from the event."""
        effects: list[Effect] = []
        if self.state is BrokerState.SHUTTING_DOWN:
            return effects
        match event:
            case Started(previous_epoch):
                self.state = BrokerState.STARTING
                self._previous_epoch = previous_epoch
                self._register_until_ms = now_ms + self._registration_timeout_ms
                self._send(effects)
            case Registered(error, epoch):
                self._on_registered(error, epoch, now_ms, effects)
            case Beaten(response):
                self._on_beaten(response, now_ms, effects)
            case Unanswered():
                self._under_way = False
                self._next(now_ms, _RETRY_MS, effects)
            case Published(offset):
                was_behind = self._published < self.epoch
                self._published = offset
                if self.state is BrokerState.STARTING and was_behind and offset >= self.epoch:
                    self._tell(effects)
            case ReadyToServe():
                self._ready = True
                self._tell(effects)
            case LogDirsChanged() | LeaderChanged():
                self._tell(effects)
            case StopAsked():
                self._stop(now_ms, effects)
            case TimePassed():
                if self.deadline_ms is not None and now_ms >= self.deadline_ms and not self._under_way:
                    self._send(effects)
        self._end_if_late(now_ms, effects)
        self._give_up_if_late(now_ms, effects)
        return effects

    def _on_registered(self, error: ErrorCode, epoch: int, now_ms: int, effects: list[Effect]) -> None:
        self._under_way = False
        self._heard_ms = now_ms
        if error in _HOPELESS and self.state is BrokerState.STARTING:
            self.state = BrokerState.SHUTTING_DOWN
            self.deadline_ms = None
            effects.append(Refused(error))
        elif error is not ErrorCode.NONE:
            # Such as the session of an earlier start that is not over yet.
            self._next(now_ms, _RETRY_MS << min(self._refusals, 10), effects)
            self._refusals += 1
        else:
            self._registered = True
            self._refusals = 0
            self.epoch = self._previous_epoch = epoch
            self._news = False
            self._send(effects)

    def _on_beaten(self, response: BrokerHeartbeatResponse, now_ms: int, effects: list[Effect]) -> None:
        self._under_way = False
        self._heard_ms = now_ms
        if (
            response.error_code in _REGISTER_AGAIN
            and self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN
        ):
            self._registered = False
            self._send(effects)
            return
        if response.error_code:
            self._next(now_ms, _RETRY_MS, effects)
            return
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            if response.should_shut_down:
                self._end(effects, granted=True)
            else:
                self._next(now_ms, _SOON_MS, effects)
            return
        if self.state is BrokerState.STARTING and response.is_caught_up:
            self.state = BrokerState.RECOVERY
            effects.append(CaughtUp())
        if self.state is BrokerState.RECOVERY and not response.is_fenced:
            self.state = BrokerState.RUNNING
            effects.append(Unfenced())
        waits = self.state is BrokerState.STARTING or (response.is_fenced and self._ready)
        self._next(now_ms, _SOON_MS if waits else self._interval_ms, effects)

    def _tell(self, effects: list[Effect]) -> None:
        """Beat now, or as soon as the request under way is answered."""
        if not self._registered:
            return  # it is said by the first heartbeat
        if self._under_way:
            self._news = True
        else:
            self._send(effects)

    def _next(self, now_ms: int, pause_ms: int, effects: list[Effect]) -> None:
        if self._news and self._registered:
            self._news = False
            self._send(effects)
        else:
            self.deadline_ms = now_ms + min(pause_ms, self._interval_ms)

    def _send(self, effects: list[Effect]) -> None:
        self._under_way = True
        self.deadline_ms = None
        if self._registered:
            stopping = self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
            effects.append(Beat(self.epoch, not self._ready, stopping))
        else:
            effects.append(Register(self._previous_epoch))

    # ---- the end

    def _stop(self, now_ms: int, effects: list[Effect]) -> None:
        if self.state not in (BrokerState.RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN):
            self._end(effects, granted=False)  # it leads nothing
        elif self.state is BrokerState.RUNNING:
            self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
            self._stopping_since_ms = self._heard_ms = now_ms
            self._tell(effects)

    def _end_if_late(self, now_ms: int, effects: list[Effect]) -> None:
        if self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return
        latest_ms = min(self._heard_ms + _SILENCE_AT_STOP_MS, self._stopping_since_ms + _STOP_MS_MAX)
        if now_ms >= latest_ms:
            self._end(effects, granted=False)
        elif self.deadline_ms is None or self.deadline_ms > latest_ms:
            self.deadline_ms = latest_ms

    def _give_up_if_late(self, now_ms: int, effects: list[Effect]) -> None:
        if self.state is not BrokerState.STARTING or self.epoch >= 0:
            return
        if self._under_way:
            return  # its answer comes first, or that there is none
        if now_ms >= self._register_until_ms:
            self.state = BrokerState.SHUTTING_DOWN
            self.deadline_ms = None
            effects.append(GivenUp())

    def _end(self, effects: list[Effect], *, granted: bool) -> None:
        self.state = BrokerState.SHUTTING_DOWN
        self.deadline_ms = None
        effects.append(Ended(granted))
