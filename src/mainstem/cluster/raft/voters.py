"""Who votes: a set of replicas, each an id and a directory id, with endpoints. Immutable.

Before kraft.version 1 voters come from controller.quorum.voters and have no directory ids: `ZERO_UUID` stands
for one that is not known, and matches any.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from mainstem.cluster.raft.control_records import (
    KRaftVersionFeature,
    LeaderVoter,
    VoterEndpoint,
    VoterEntry,
    VotersRecord,
)
from mainstem.protocol.uuids import ZERO_UUID


class ReplicaKey(Struct, frozen=True, order=True, gc=False):
    """A replica: a node, and the directory that holds its copy of the log."""

    node_id: int
    directory_id: bytes = ZERO_UUID

    def matches(self, other: "ReplicaKey") -> bool:
        """Whether both are the same replica, as far as their directories are known."""
        return self.node_id == other.node_id and (
            ZERO_UUID in (self.directory_id, other.directory_id) or self.directory_id == other.directory_id
        )


class Endpoint(Struct, frozen=True, order=True, gc=False):
    """Where a node is reached on one of its listeners."""

    listener: str
    host: str
    port: int


class Voter(Struct, frozen=True, gc=False):
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    kraft_version: KRaftVersionFeature = KRaftVersionFeature()

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((each for each in self.endpoints if each.listener == listener), None)

    def supports(self, kraft_version: int) -> bool:
        feature = self.kraft_version
        return feature.min_supported_version <= kraft_version <= feature.max_supported_version


class VoterSet(Struct, frozen=True, gc=False):
    """At most one voter per node id, ordered by it."""

    voters: tuple[Voter, ...] = ()

    @staticmethod
    def of(voters: Iterable[Voter]) -> "VoterSet":
        ordered = tuple(sorted(voters, key=lambda voter: voter.key))
        if len({voter.key.node_id for voter in ordered}) != len(ordered):
            raise ValueError(f"a node votes twice in {[voter.key.node_id for voter in ordered]}")
        return VoterSet(ordered)

    @staticmethod
    def static(addresses: Iterable[tuple[int, str, int]], listener: str) -> "VoterSet":
        """The voters of controller.quorum.voters: (id, host, port) each."""
        return VoterSet.of(
            Voter(ReplicaKey(node_id), (Endpoint(listener, host, port),)) for node_id, host, port in addresses
        )

    @staticmethod
    def from_record(record: VotersRecord) -> "VoterSet":
        return VoterSet.of(
            Voter(
                ReplicaKey(entry.voter_id, entry.voter_directory_id),
                tuple(Endpoint(each.name, each.host, each.port) for each in entry.endpoints),
                entry.k_raft_version_feature,
            )
            for entry in record.voters
        )

    def to_record(self) -> VotersRecord:
        return VotersRecord(
            voters=[
                VoterEntry(
                    voter.key.node_id,
                    voter.key.directory_id,
                    [VoterEndpoint(each.listener, each.host, each.port) for each in voter.endpoints],
                    voter.kraft_version,
                )
                for voter in self.voters
            ]
        )

    def __len__(self) -> int:
        return len(self.voters)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters)

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(voter.key.node_id for voter in self.voters)

    @property
    def majority(self) -> int:
        """How many of the voters decide."""
        return len(self.voters) // 2 + 1

    def get(self, node_id: int) -> Voter | None:
        return next((voter for voter in self.voters if voter.key.node_id == node_id), None)

    def find(self, replica: ReplicaKey) -> Voter | None:
        """The voter that this replica is; None for an observer, also one with a voter's id and another
        directory.
        """
        voter = self.get(replica.node_id)
        return voter if voter is not None and voter.key.matches(replica) else None

    def is_only(self, replica: ReplicaKey) -> bool:
        return len(self.voters) == 1 and self.find(replica) is not None

    def with_voter(self, voter: Voter) -> "VoterSet":
        """The voter added, or in the place of the one with its id."""
        others = [each for each in self.voters if each.key.node_id != voter.key.node_id]
        return VoterSet.of([*others, voter])

    def without(self, replica: ReplicaKey) -> "VoterSet":
        return replace(self, voters=tuple(voter for voter in self.voters if not voter.key.matches(replica)))

    def leader_voters(self) -> list[LeaderVoter]:
        """As a LeaderChangeMessage names them."""
        return [LeaderVoter(voter.key.node_id, voter.key.directory_id) for voter in self.voters]

    def overlaps_majority(self, other: "VoterSet") -> bool:
        """Whether every majority of one set shares a voter with every majority of the other: at most one
        voter was added or removed. A voter with a new directory is another voter.
        """
        mine = {voter.key for voter in self.voters}
        theirs = {voter.key for voter in other.voters}
        return len(mine - theirs) + len(theirs - mine) <= 1
