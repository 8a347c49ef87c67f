"""Leads this node's broker through its life in the cluster: sends what the core wants, tells it the answers.

The core is `mainstem.cluster.broker_lifecycle`. As long as the broker cannot serve, this says now and then in
the log what it waits for.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mainstem.broker.errors import StartupError
from mainstem.cluster.broker_lifecycle import (
    Beat,
    Beaten,
    BrokerLifecycle,
    BrokerState,
    CaughtUp,
    Ended,
    Event,
    GivenUp,
    LeaderChanged,
    LogDirsChanged,
    Published,
    ReadyToServe,
    Refused,
    Register,
    Registered,
    Started,
    StopAsked,
    TimePassed,
    Unanswered,
    Unfenced,
)
from mainstem.cluster.features import SUPPORTED_FEATURES
from mainstem.config.listeners import PROTOCOLS
from mainstem.protocol.apis.k62_broker_registration import BrokerRegistrationRequest, Feature, Listener
from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest
from mainstem.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

_FIRST_NOTICE_SECONDS: Final = 5.0
_NOTICE_SECONDS_MAX: Final = 60.0


class Lifecycle:
    """One start of one broker: each is an incarnation of its own."""

    def __init__(self, server: "SharedServer") -> None:
        config = server.config
        self._server = server
        self._core = BrokerLifecycle(
            config.get("broker.heartbeat.interval.ms"), config.get("initial.broker.registration.timeout.ms")
        )
        self._incarnation_id = server.randomness.uuid()
        self._timeout_s: float = config.get("broker.session.timeout.ms") / 1000
        self._caught_up: asyncio.Future[None] = server.loop.create_future()
        self._unfenced: asyncio.Future[None] = server.loop.create_future()
        self._ended: asyncio.Future[None] = server.loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._notice: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._problem = ""

    @property
    def state(self) -> BrokerState:
        return self._core.state

    @property
    def epoch(self) -> int:
        """That of the registration; -1 before it."""
        return self._core.epoch

    # ---- the stations of a life

    async def join(self) -> None:
        """Register, and wait until the metadata that is applied here is no older. StartupError when this
        cluster does not take this broker.
        """
        server = self._server
        server.quorum.subscribe(self._on_leader_changed)
        self._notice = server.loop.call_later(_FIRST_NOTICE_SECONDS, self._say, _FIRST_NOTICE_SECONDS)
        if server.stands_alone:
            # Nobody is led here by others before clients are served: it is unfenced with the same decision.
            self._step(ReadyToServe())
        self._step(Started(self._last_epoch()))
        await self._caught_up

    async def serve(self) -> None:
        """Logs and publishers are ready: wait until the controller lets clients come."""
        self._step(ReadyToServe())
        await self._unfenced
        self._cancel_notice()

    def log_dirs_changed(self) -> None:
        """Some have failed, or take no replicas any more."""
        self._step(LogDirsChanged())

    async def leave(self) -> None:
        """Have the leaderships move away, as far as a controller can be reached."""
        server = self._server
        if self._ended.done():
            return  # it has left already, perhaps because its start failed
        if self.state is not BrokerState.RUNNING or server.stands_alone:
            return  # there is nothing to hand over, or nobody to take it
        if not server.config.get("controlled.shutdown.enable"):
            return
        self._step(StopAsked())
        await self._ended

    async def close(self) -> None:
        """Tell the controller nothing more."""
        self._cancel_notice()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for future in (self._caught_up, self._unfenced, self._ended):
            future.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---- the core

    def _step(self, event: Event) -> None:
        core = self._core
        for effect in core.step(event, self._now_ms()):
            match effect:
                case Register(previous_epoch):
                    self._spawn(self._register(previous_epoch))
                case Beat():
                    self._spawn(self._beat(effect))
                case CaughtUp():
                    _settle(self._caught_up)
                case Unfenced():
                    _settle(self._unfenced)
                case Refused(error):
                    reason = f"{error.name}: {error.message}{_advice(error)}"
                    self._refused(f"the cluster does not take this broker: {reason}")
                case GivenUp():
                    self._refused(
                        "no controller has let this broker in for initial.broker.registration.timeout.ms: "
                        f"{self._problem or 'none has answered'}"
                    )
                case Ended(granted):
                    if not granted:
                        logger.warning("stopping without a controller's leave: leaderships may still be here")
                    _settle(self._ended)
        self._set_timer(core.deadline_ms)

    def _refused(self, reason: str) -> None:
        if not self._caught_up.done():
            self._caught_up.set_exception(StartupError(reason))

    def _set_timer(self, deadline_ms: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline_ms is not None:
            seconds = max(0, deadline_ms - self._now_ms()) / 1000
            self._timer = self._server.loop.call_later(seconds, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._step(TimePassed())

    def _now_ms(self) -> int:
        return self._server.clock.steady_ms()

    def _on_leader_changed(self, *_: object) -> None:
        if not self._ended.done():
            self._step(LeaderChanged())

    # ---- requests

    def _spawn(self, work: "asyncio._CoroutineLike[None]") -> None:
        task = self._server.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _last_epoch(self) -> int:
        """The broker's epoch at its last stop; -1 unless that was clean for all directories."""
        epochs = {entry.broker_epoch if entry.clean else -1 for entry in self._server.log_manager.dirs}
        return epochs.pop() if len(epochs) == 1 else -1

    async def _register(self, previous_epoch: int) -> None:
        server = self._server
        request = BrokerRegistrationRequest(
            broker_id=server.node_id,
            cluster_id=server.cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                Listener(
                    bound.name,
                    bound.advertised_host,
                    bound.advertised_port,
                    PROTOCOLS.index(bound.protocol),
                )
                for bound in server.client_listeners
            ],
            features=[Feature(name, level.first, level.last) for name, level in SUPPORTED_FEATURES.items()],
            rack=server.config.get("broker.rack"),
            log_dirs=[
                entry.meta.directory_id for entry in server.log_manager.online_dirs if entry.meta is not None
            ],
            previous_broker_epoch=previous_epoch,
        )
        try:
            response = await server.controller.register(request, self._timeout_s)
        except KafkaError as error:
            self._failed("register", error)
            return
        code = _known(response.error_code)
        self._note(code, "register")
        if code is ErrorCode.KAFKA_STORAGE_ERROR and server.is_active_controller:
            failures = (entry.health.failure for entry in server.log_manager.dirs)
            reason = next((failure for failure in failures if failure is not None), code.message)
            self._refused(f"cannot write the metadata log: {reason}")  # and nobody else can
            return
        self._step(Registered(code, response.broker_epoch))
        if code is ErrorCode.NONE:
            with suppress(KafkaError):  # of a change of controllers: the next heartbeats find out
                await server.loader.applied(response.broker_epoch)
                self._step(Published(response.broker_epoch))

    async def _beat(self, beat: Beat) -> None:
        server = self._server
        failed = [
            entry.meta.directory_id
            for entry in server.log_manager.dirs
            if entry.health.failure is not None and entry.meta is not None
        ]
        request = BrokerHeartbeatRequest(
            broker_id=server.node_id,
            broker_epoch=beat.epoch,
            current_metadata_offset=server.loader.applied_offset,
            want_fence=beat.want_fence,
            want_shut_down=beat.want_shut_down,
            offline_log_dirs=failed,
            cordoned_log_dirs=self._cordoned(),
        )
        try:
            response = await server.controller.heartbeat(request, self._timeout_s)
        except KafkaError as error:
            self._failed("send a heartbeat", error)
            return
        self._note(_known(response.error_code), "send a heartbeat")
        if not response.error_code and response.is_fenced:
            self._problem = "the controller keeps it fenced"
            if not response.is_caught_up:
                self._problem = f"metadata {server.loader.applied_offset} is behind the controller's"
        self._step(Beaten(response))

    def _cordoned(self) -> list[bytes] | None:
        """None while there never were any, since that is what older controllers understand."""
        server = self._server
        cordoned = [
            entry.meta.directory_id for entry in server.log_manager.cordoned if entry.meta is not None
        ]
        known = server.image.brokers.get(server.node_id)
        if not cordoned and (known is None or not known.cordoned_log_dirs):
            return None
        return sorted(cordoned)

    def _failed(self, what: str, error: KafkaError) -> None:
        self._problem = error.message or error.code.message
        if self._unfenced.done():
            logger.warning("cannot %s: %s", what, self._problem)
        self._step(Unanswered())

    def _note(self, code: ErrorCode, what: str) -> None:
        former, self._problem = self._problem, ""
        if code is not ErrorCode.NONE:
            self._problem = f"{code.name}: {code.message}{_advice(code)}"
            if self._problem != former:  # else `_say` repeats it now and then
                logger.warning("cannot %s: %s", what, self._problem)

    # ---- what it waits for

    def _say(self, waited_s: float) -> None:
        config = self._server.config
        known = config.get("controller.quorum.voters") or config.get("controller.quorum.bootstrap.servers")
        waits_for = f"a controller to register with (of {', '.join(known)})"
        if self._core.epoch >= 0:
            waits_for = "the controller to unfence it"
        logger.warning(
            "broker %d waits for %s: %s", self._server.node_id, waits_for, self._problem or "no answer yet"
        )
        pause_s = min(2 * waited_s, _NOTICE_SECONDS_MAX)
        self._notice = self._server.loop.call_later(pause_s, self._say, pause_s)

    def _cancel_notice(self) -> None:
        if self._notice is not None:
            self._notice.cancel()
            self._notice = None


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _known(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:  # of a controller of another version
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _advice(code: ErrorCode) -> str:
    """What a person can do about it."""
    if code is ErrorCode.INCONSISTENT_CLUSTER_ID:
        return "; its directories belong to another cluster, check log.dirs and the controllers' addresses"
    if code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
        return "; another node may have this node.id, or this one's last session is not over yet"
    return ""
