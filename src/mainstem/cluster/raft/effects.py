"""What the raft core wants done, in this order, all of it before the next event.

An effect that fails on disk is the end of the node's part in the quorum: the driver stops, and never tells
another event.
"""

from msgspec import Struct

from mainstem.cluster.raft.messages import Destination, Request, Response, Token
from mainstem.cluster.raft.quorum_state import QuorumState
from mainstem.cluster.raft.voters import Endpoint
from mainstem.cluster.snapshot import SnapshotId
from mainstem.protocol.apis.k01_fetch import FetchResponse
from mainstem.protocol.apis.k59_fetch_snapshot import FetchSnapshotResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.primitives import Buffer


class StoreQuorumState(Struct, frozen=True, gc=False):
    """Write `quorum-state`, durable before anything after it happens: above all, before an answer leaves."""

    state: QuorumState


class Send(Struct, frozen=True, gc=False):
    """Send the request over the driver's connection to there, in the newest version both sides know. One
    `Answered` or `Unanswered` follows. The core asks a destination one thing at a time, but may ask the next
    while it has given up on the last (a Vote while a Fetch hangs): a driver whose connection still waits
    opens another. A destination's id is below zero while only its address is known (bootstrap servers).
    """

    destination: Destination
    request: Request


class Reply(Struct, frozen=True, gc=False):
    """The answer to `Asked`."""

    token: Token
    response: Response


class ReplyRecords(Struct, frozen=True, gc=False):
    """The answer to a Fetch. Its one partition, `response.responses[0].partitions[0]`, gets as `records` what
    a read of the log from `from_offset` up to the log end gives, at most `max_bytes` but at least one batch.
    Read at the moment of the effect, or truncation may have changed it.
    """

    token: Token
    response: FetchResponse
    from_offset: int
    max_bytes: int


class ReplySnapshotChunk(Struct, frozen=True, gc=False):
    """The answer to a FetchSnapshot: `response.topics[0].partitions[0].unaligned_records` gets the bytes of
    the snapshot from `position` on, at most `max_bytes`. When the file is gone, the driver puts
    SNAPSHOT_NOT_FOUND there.
    """

    token: Token
    response: FetchSnapshotResponse
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


class Append(Struct, frozen=True, gc=False):
    """Append whole batches, offsets and epochs as they are, to the end of the log, where they fit: what the
    leader sent, checked, or control records of this leader. The log ends at `end_offset` then. Replay them,
    fsync soon, then tell `Durable`; a follower asks for more only then.
    """

    records: Buffer
    end_offset: int


class Truncate(Struct, frozen=True, gc=False):
    """Remove the log from `offset` on: never below the high watermark. What was replayed of it is undone."""

    offset: int


class WriteSnapshotChunk(Struct, frozen=True, gc=False):
    """Write bytes of a snapshot that is being fetched; position 0 begins a new file, whatever was there."""

    snapshot_id: SnapshotId
    position: int
    data: Buffer


class InstallSnapshot(Struct, frozen=True, gc=False):
    """The fetched snapshot is complete: fsync and check it, put it in its place, empty the log so that it
    starts and ends at the snapshot's offset, load its image. Then `SnapshotInstalled` or `SnapshotUnusable`;
    it may take its time, the core waits.
    """

    snapshot_id: SnapshotId


class DropSnapshot(Struct, frozen=True, gc=False):
    """A snapshot that was being fetched is not wanted any more: delete what there is of it."""

    snapshot_id: SnapshotId


class HighWatermark(Struct, frozen=True, gc=False):
    """Everything below is committed. Never goes back."""

    offset: int


class LeaderChanged(Struct, frozen=True, gc=False):
    """The leader of the epoch, and where it is reached on the controller listener; -1 and None while it is
    not known. Told on every change of one of them.
    """

    leader_id: int
    epoch: int
    endpoint: Endpoint | None


class BecameActive(Struct, frozen=True, gc=False):
    """This node leads `epoch`, and the epoch's first record is committed and so is all before it. The
    controller begins once that is replayed. `HighWatermark` came before.
    """

    epoch: int


class Resigned(Struct, frozen=True, gc=False):
    """This node leads `epoch` no more; before any truncation. The controller lets go of what it wrote since
    the high watermark. Also told when the epoch was never active.
    """

    epoch: int


class UpgradeAnswered(Struct, frozen=True, gc=False):
    """The outcome of `UpgradeKRaftVersion`; NONE once it is committed, or when it changes nothing."""

    token: Token
    error: ErrorCode
    message: str = ""


class Finished(Struct, frozen=True, gc=False):
    """After `Stop`: nothing is left to say to anybody."""


Effect = (
    StoreQuorumState
    | Send
    | Reply
    | ReplyRecords
    | ReplySnapshotChunk
    | Append
    | Truncate
    | WriteSnapshotChunk
    | InstallSnapshot
    | DropSnapshot
    | HighWatermark
    | LeaderChanged
    | BecameActive
    | Resigned
    | UpgradeAnswered
    | Finished
)
