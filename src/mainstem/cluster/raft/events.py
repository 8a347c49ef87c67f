"""What a driver tells the raft core, one `step` each. Plain data; the core never sees a socket or a file."""

from msgspec import Struct

from mainstem.cluster.raft.control_records import VotersRecord
from mainstem.cluster.raft.messages import Destination, Request, Response, Token
from mainstem.cluster.snapshot import SnapshotId


class Started(Struct, frozen=True, gc=False):
    """The driver is ready to perform effects. The first event, once."""


class TimePassed(Struct, frozen=True, gc=False):
    """`Raft.deadline_ms` has come. Harmless at any other time."""


class Asked(Struct, frozen=True, gc=False):
    """Another node, or a tool, asks: exactly one `Reply`, `ReplyRecords` or `ReplySnapshotChunk` answers the
    token, now or later. The driver has authorised the request already, and drops an answer whose connection
    is gone. A token is any hashable object that is used once.
    """

    request: Request
    version: int
    token: Token
    # The name of the listener it came in on: answers name endpoints of that listener.
    listener: str = ""


class Answered(Struct, frozen=True, gc=False):
    """A response to what `Send` sent. `request` is the very object of the effect."""

    destination: Destination
    request: Request
    response: Response


class Unanswered(Struct, frozen=True, gc=False):
    """What `Send` sent will not be answered: no connection could be made (`refused` when the other machine
    said at once that nobody listens), it broke, or controller.quorum.request.timeout.ms passed. A peer that
    cannot be asked in a version that the request needs counts here too, but for a pre-vote: that is
    `Answered` with `VoteResponse(error_code=UNSUPPORTED_VERSION)`.
    """

    destination: Destination
    request: Request
    refused: bool = False


class Written(Struct, frozen=True, gc=False):
    """The controller of this node, as the leader, has appended records to the log, which ends here now: they
    may be read by followers, but are not durable yet. Not told of what an `Append` effect wrote.
    """

    end_offset: int


class Durable(Struct, frozen=True, gc=False):
    """Everything below is on disk for good. Told after the fsync of any append, the effect's or the driver's
    own; several appends may share one. Older news than what a truncation left is ignored.
    """

    end_offset: int


class SnapshotTaken(Struct, frozen=True, gc=False):
    """A snapshot of this node's own is complete, or older ones were deleted and the log start has moved."""


class SnapshotInstalled(Struct, frozen=True, gc=False):
    """What `InstallSnapshot` asked for is done, durable, and `RaftLog` shows it. What the snapshot's control
    records say comes along; None where there are none.
    """

    snapshot_id: SnapshotId
    kraft_version: int | None
    voters: VotersRecord | None


class SnapshotUnusable(Struct, frozen=True, gc=False):
    """What was fetched is damaged; the driver has deleted it. The core begins again."""

    snapshot_id: SnapshotId


class Resign(Struct, frozen=True, gc=False):
    """The controller cannot go on in this epoch: let others lead. Nothing when this node leads no more."""

    epoch: int


class Stop(Struct, frozen=True, gc=False):
    """An orderly end: a leader hands over (EndQuorumEpoch), nobody stands for election any more. `Finished`
    says when everything is said; the driver need not wait for it longer than it likes.
    """


class UpgradeKRaftVersion(Struct, frozen=True, gc=False):
    """UpdateFeatures wants this level of kraft.version; `UpgradeAnswered` tells the outcome."""

    level: int
    token: Token
    validate_only: bool = False


Event = (
    Started
    | TimePassed
    | Asked
    | Answered
    | Unanswered
    | Written
    | Durable
    | SnapshotTaken
    | SnapshotInstalled
    | SnapshotUnusable
    | Resign
    | Stop
    | UpgradeKRaftVersion
)
