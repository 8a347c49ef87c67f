"""What the control records of the log say, by offset: the voters and kraft.version.

They act as soon as they are appended, committed or not, and a truncation undoes them. Whoever opens the log
fills a history from the newest snapshot and every control record after it; from then on the raft core keeps
it.
"""

from mainstem.cluster.raft.control_records import ControlRecord, KRaftVersionRecord, VotersRecord
from mainstem.cluster.raft.voters import VoterSet

# Below every record: what a snapshot or the configuration says.
BEFORE_ALL = -1


class ControlHistory:
    """Voters and kraft.version, the newest last."""

    def __init__(self, static_voters: VoterSet) -> None:
        """`static_voters` are those of controller.quorum.voters, none at all when it is not set. Any
        VotersRecord overrides them.
        """
        self._static = static_voters
        self._voters: list[tuple[int, VoterSet]] = []
        self._kraft_versions: list[tuple[int, int]] = []

    def load_snapshot(self, offset: int, kraft_version: int | None, voters: VotersRecord | None) -> None:
        """Begin anew from what a snapshot that ends at `offset` says."""
        self._voters = [] if voters is None else [(offset - 1, VoterSet.from_record(voters))]
        self._kraft_versions = [] if kraft_version is None else [(offset - 1, kraft_version)]

    def append(self, offset: int, record: ControlRecord) -> None:
        """A control record that stands at `offset`; other kinds than those two are passed over."""
        if isinstance(record, VotersRecord):
            assert offset > self.voters_offset, "the history goes forward"
            self._voters.append((offset, VoterSet.from_record(record)))
        elif isinstance(record, KRaftVersionRecord):
            self._kraft_versions.append((offset, record.k_raft_version))

    def truncate(self, end_offset: int) -> None:
        """The log ends at `end_offset` now: what stood there or behind never was."""
        self._voters = [each for each in self._voters if each[0] < end_offset]
        self._kraft_versions = [each for each in self._kraft_versions if each[0] < end_offset]

    def trim(self, start_offset: int) -> None:
        """Nobody asks about offsets below `start_offset` any more."""
        while len(self._voters) > 1 and self._voters[1][0] < start_offset:
            del self._voters[0]
        while len(self._kraft_versions) > 1 and self._kraft_versions[1][0] < start_offset:
            del self._kraft_versions[0]

    @property
    def voters(self) -> VoterSet:
        """Who votes now."""
        return self._voters[-1][1] if self._voters else self._static

    @property
    def voters_offset(self) -> int:
        """Where the record stands that says so; BEFORE_ALL for the configuration."""
        return self._voters[-1][0] if self._voters else BEFORE_ALL

    @property
    def voters_before(self) -> VoterSet:
        """Who voted before the newest record, which may not be committed yet."""
        return self._voters[-2][1] if len(self._voters) > 1 else self._static

    @property
    def kraft_version(self) -> int:
        return self._kraft_versions[-1][1] if self._kraft_versions else 0

    def voters_at(self, offset: int) -> VotersRecord | None:
        """What a snapshot that ends at `offset` has to say about the voters; None before any record."""
        known = [voters for at, voters in self._voters if at < offset]
        return known[-1].to_record() if known else None

    def kraft_version_at(self, offset: int) -> int:
        """What a snapshot that ends at `offset` has to say about kraft.version."""
        known = [level for at, level in self._kraft_versions if at < offset]
        return known[-1] if known else 0
