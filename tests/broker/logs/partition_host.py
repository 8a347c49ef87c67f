"""A node as its partitions see it: it writes down what they ask for."""

from collections.abc import Iterable

from mainstem.broker.logs.partition import Partition
from mainstem.replication.brokers import Brokers
from mainstem.replication.leader_state import Proposal
from mainstem.storage.flush import FlushWork


class Host:
    """Brokers 1 to 3 are there, each in an epoch ten times its id, unless a test says otherwise."""

    def __init__(self, lag_ms_max: int = 1_000) -> None:
        self.brokers = Brokers(lag_ms_max)
        self.brokers.epochs = {1: 10, 2: 20, 3: 30}
        self.now = 0
        self.proposals: list[Proposal] = []
        self.roles: list[str] = []
        self.awaited: list[int] = []
        self.on_disk: list[Partition] = []
        self.synced: list[Partition] = []

    def now_ms(self) -> int:
        return self.now

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        self.proposals.append(proposal)

    def role_changed(self, partition: Partition) -> None:
        self.roles.append(type(partition.role).__name__)

    def await_followers(self, broker_ids: Iterable[int]) -> None:
        self.awaited += broker_ids

    def sync_cut(self, partition: Partition, work: FlushWork) -> None:
        work.run()
        self.synced.append(partition)

    def followed_to_disk(self, partition: Partition) -> None:
        self.on_disk.append(partition)
