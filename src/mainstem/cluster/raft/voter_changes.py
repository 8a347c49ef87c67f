"""The leader's side of KIP-853: adding, removing and updating a voter, and kraft.version 0 -> 1.

One change at a time, and none before what is committed is known: a voter set acts as soon as it is appended,
so that two in a row could give two majorities that share nobody.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from mainstem.cluster.raft.control_records import ControlRecord, KRaftVersionFeature, KRaftVersionRecord
from mainstem.cluster.raft.effects import UpgradeAnswered
from mainstem.cluster.raft.events import UpgradeKRaftVersion
from mainstem.cluster.raft.messages import Destination, Response, Token
from mainstem.cluster.raft.voters import Voter, VoterSet
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.apis.k80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterResponse
from mainstem.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from mainstem.cluster.raft.leader import Leader
    from mainstem.cluster.raft.replica import Replica

_KRAFT_VERSION = "kraft.version"
Answer = Callable[[ErrorCode, str], Response]


class _Change(Struct, gc=False):
    """What is under way: first perhaps a question to the new voter, then a record that is to be committed."""

    token: Token
    answer: Answer
    deadline_ms: int
    # The record that decides; None while the new voter has not answered.
    offset: int | None = None
    joining: Voter | None = None
    asked: Destination | None = None
    answer_early: bool = False
    answered: bool = False


class VoterChanges:
    def __init__(self, leader: "Leader", replica: "Replica") -> None:
        self._leader = leader
        self._change: _Change | None = None
        self._upgrade: tuple[Token, int] | None = None
        # Below kraft.version 1 nothing is recorded: what voters say of themselves is kept here, for the day
        # of the upgrade.
        self._said: VoterSet = replica.history.voters
        if self._said.find(replica.key) is not None:
            self._said = self._said.with_voter(replica.identity.as_voter)

    def obstacle(self, replica: "Replica") -> str | None:
        """Why no change of the voters can begin now."""
        history = replica.history
        if self._change is not None or self._upgrade is not None:
            return "an earlier change of the voters is still under way"
        if replica.high_watermark is None or not self._leader.is_active:
            return "the leader does not know yet what is committed"
        if history.voters_offset >= replica.high_watermark:
            return f"the voters of offset {history.voters_offset} are not committed yet"
        return None

    # ---- adding

    def add(self, replica: "Replica", token: Token, request: AddRaftVoterRequest, voter: Voter) -> None:
        def answer(error: ErrorCode, message: str) -> Response:
            return AddRaftVoterResponse(error_code=error, error_message=message or None)

        destination = replica.destination(voter)
        if destination is None:
            names = f"the listener {replica.identity.listener} of the controllers"
            replica.reply(
                token, answer(ErrorCode.INVALID_REQUEST, f"the request has no endpoint for {names}")
            )
        elif (obstacle := self.obstacle(replica)) is not None:
            replica.reply(token, answer(ErrorCode.REQUEST_TIMED_OUT, obstacle))
        elif replica.history.kraft_version < 1:
            replica.reply(token, answer(ErrorCode.UNSUPPORTED_VERSION, _NEEDS_KRAFT_VERSION))
        elif voter.key.node_id in replica.history.voters.ids:
            taken = f"node {voter.key.node_id} is a voter already"
            replica.reply(token, answer(ErrorCode.DUPLICATE_VOTER, taken))
        else:
            wait_ms = min(max(request.timeout_ms, 0), 2 * replica.settings.request_timeout_ms)
            self._change = _Change(
                token,
                answer,
                replica.now_ms + (wait_ms or replica.settings.request_timeout_ms),
                joining=voter,
                asked=destination,
                answer_early=not request.ack_when_committed,
            )
            replica.ask(destination, _api_versions_request)

    def on_api_versions(
        self, replica: "Replica", destination: Destination, response: ApiVersionsResponse | None
    ) -> None:
        """The replica that is to vote has said what it supports, or nothing."""
        change = self._change
        if change is None or change.asked != destination or change.joining is None:
            return
        change.asked = None
        if response is None or response.error_code:
            self._answer(replica, ErrorCode.REQUEST_TIMED_OUT, "the new voter does not answer")
            return
        feature = next((each for each in response.supported_features if each.name == _KRAFT_VERSION), None)
        lowest, highest = (0, 0) if feature is None else (feature.min_version, feature.max_version)
        voter = Voter(change.joining.key, change.joining.endpoints, KRaftVersionFeature(lowest, highest))
        if not voter.supports(replica.history.kraft_version):
            level = replica.history.kraft_version
            text = f"the new voter supports kraft.version {lowest} to {highest}, not {level}"
            self._answer(replica, ErrorCode.INVALID_REQUEST, text)
        elif not self._leader.is_caught_up(replica, voter.key):
            text = "the new voter has not caught up with the leader's log yet"
            self._answer(replica, ErrorCode.REQUEST_TIMED_OUT, text)
        else:
            change.joining = None
            self._append(replica, change, replica.history.voters.with_voter(voter))

    # ---- removing

    def remove(self, replica: "Replica", token: Token, voter: Voter) -> None:
        def answer(error: ErrorCode, message: str) -> Response:
            return RemoveRaftVoterResponse(error_code=error, error_message=message or None)

        voters = replica.history.voters
        if (obstacle := self.obstacle(replica)) is not None:
            replica.reply(token, answer(ErrorCode.REQUEST_TIMED_OUT, obstacle))
        elif replica.history.kraft_version < 1:
            replica.reply(token, answer(ErrorCode.UNSUPPORTED_VERSION, _NEEDS_KRAFT_VERSION))
        elif voters.find(voter.key) is None:
            text = f"node {voter.key.node_id} with this directory id is not a voter"
            replica.reply(token, answer(ErrorCode.VOTER_NOT_FOUND, text))
        elif len(voters) == 1:
            text = "the last voter cannot be removed"
            replica.reply(token, answer(ErrorCode.INVALID_REQUEST, text))
        else:
            self._change = _Change(token, answer, replica.now_ms + replica.settings.request_timeout_ms)
            self._append(replica, self._change, voters.without(voter.key))

    # ---- updating

    def update(self, replica: "Replica", token: Token, answer: Answer, voter: Voter) -> None:
        voters, level = replica.history.voters, replica.history.kraft_version
        known = voters.find(voter.key) if level > 0 else voters.get(voter.key.node_id)
        if replica.high_watermark is None or not self._leader.is_active:
            replica.reply(token, answer(ErrorCode.REQUEST_TIMED_OUT, ""))
        elif not voter.supports(level):
            replica.reply(token, answer(ErrorCode.INVALID_REQUEST, ""))
        elif known is None:
            replica.reply(token, answer(ErrorCode.VOTER_NOT_FOUND, ""))
        elif level == 0:
            self._said = self._said.with_voter(voter)
            replica.reply(token, answer(ErrorCode.NONE, ""))
        elif self.obstacle(replica) is not None:
            replica.reply(token, answer(ErrorCode.REQUEST_TIMED_OUT, ""))
        elif known == voter:
            replica.reply(token, answer(ErrorCode.NONE, ""))
        else:
            self._change = _Change(token, answer, replica.now_ms + replica.settings.request_timeout_ms)
            self._append(replica, self._change, voters.with_voter(voter))

    # ---- kraft.version

    def upgrade(self, replica: "Replica", event: UpgradeKRaftVersion) -> None:
        """Record the voters with their directory ids from here on."""
        level = replica.history.kraft_version

        def answer(error: ErrorCode, message: str = "") -> None:
            replica.effects.append(UpgradeAnswered(event.token, error, message))

        if event.level == level:
            answer(ErrorCode.NONE)
            return
        if event.level != 1:
            answer(ErrorCode.INVALID_UPDATE_VERSION, f"kraft.version {level} cannot become {event.level}")
            return
        silent = [
            voter.key.node_id
            for voter in self._said
            if not voter.supports(1) or not any(voter.key.directory_id)
        ]
        if silent:
            text = f"the voters {silent} do not support kraft.version 1, or have not said so yet"
            answer(ErrorCode.INVALID_UPDATE_VERSION, text)
        elif (obstacle := self.obstacle(replica)) is not None:
            answer(ErrorCode.REQUEST_TIMED_OUT, obstacle)
        elif event.validate_only:
            answer(ErrorCode.NONE)
        else:
            records: list[ControlRecord] = [KRaftVersionRecord(k_raft_version=1), self._said.to_record()]
            self._upgrade = (event.token, replica.end_offset + 1)
            self._record(replica, records)

    # ---- until it is committed

    def _append(self, replica: "Replica", change: _Change, voters: VoterSet) -> None:
        assert voters.overlaps_majority(replica.history.voters), "one voter at a time"
        change.offset = replica.end_offset
        self._record(replica, [voters.to_record()])

    def _record(self, replica: "Replica", records: list[ControlRecord]) -> None:
        """They act at once; a change of who votes may already commit something."""
        replica.append_control(records)
        self._leader.know_voters(replica)
        self._leader.commit(replica)
        change = self._change
        if change is not None and change.answer_early and not change.answered:
            change.answered = True
            replica.reply(change.token, change.answer(ErrorCode.NONE, ""))

    def committed(self, replica: "Replica", high_watermark: int) -> None:
        change = self._change
        if change is not None and change.offset is not None and change.offset < high_watermark:
            self._answer(replica, ErrorCode.NONE, "")
        if self._upgrade is not None and self._upgrade[1] < high_watermark:
            replica.effects.append(UpgradeAnswered(self._upgrade[0], ErrorCode.NONE))
            self._upgrade = None
        if not replica.is_voter and replica.history.voters_offset < high_watermark:
            # It led until its own removal was committed.
            self._leader.resign()

    def poll(self, replica: "Replica") -> int | None:
        """Nobody waits for ever; a record that was appended stays, and acts, whatever was answered."""
        change = self._change
        if change is None or change.answered:
            return None
        if replica.now_ms < change.deadline_ms:
            return change.deadline_ms
        if change.offset is None:
            self._answer(replica, ErrorCode.REQUEST_TIMED_OUT, "the new voter does not answer")
        else:
            change.answered = True
            text = "the change was not committed in time; it may be later"
            replica.reply(change.token, change.answer(ErrorCode.REQUEST_TIMED_OUT, text))
        return None

    def give_up(self, replica: "Replica") -> None:
        """This node leads no more; whether what it appended will be committed is for the next leader."""
        text = "this node is not the leader any more"
        self._answer(replica, ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
        if self._upgrade is not None:
            token = self._upgrade[0]
            replica.effects.append(UpgradeAnswered(token, ErrorCode.NOT_LEADER_OR_FOLLOWER, text))
            self._upgrade = None

    def _answer(self, replica: "Replica", error: ErrorCode, message: str) -> None:
        change, self._change = self._change, None
        if change is not None and not change.answered:
            replica.reply(change.token, change.answer(error, message))


_NEEDS_KRAFT_VERSION = "voters can be changed from kraft.version 1 on; the cluster is at 0"


def _api_versions_request() -> ApiVersionsRequest:
    return ApiVersionsRequest("mainstem", "raft")
