"""The coordinators of a node: of groups, and of transactions. Each kind is loaded when its topic is there, or
when somebody asks for it first.
"""

from typing import TYPE_CHECKING, Any

from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from mainstem.broker.metadata.producer_ids import ProducerIds
from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.image import MetadataImage

if TYPE_CHECKING:
    from mainstem.broker.coordination.coordinators import Coordinators
    from mainstem.broker.coordination.groups import GroupCoordinators
    from mainstem.broker.coordination.transactions import TransactionCoordinators
    from mainstem.broker.logs.replicas import Replicas
    from mainstem.broker.shared_server import SharedServer


class NodeCoordinators:
    """Both kinds; the last publisher, since they look for topics in the cache and for logs among the
    replicas.
    """

    def __init__(self, server: "SharedServer", replicas: "Replicas", producer_ids: ProducerIds) -> None:
        self.server = server
        self.replicas = replicas
        self.producer_ids = producer_ids
        # None until they are loaded.
        self.loaded_groups: GroupCoordinators | None = None
        self.loaded_transactions: TransactionCoordinators | None = None
        self._will_look = False

    @property
    def groups(self) -> "GroupCoordinators":
        return self.loaded_groups if self.loaded_groups is not None else self._load_groups()

    def _load_groups(self) -> "GroupCoordinators":
        from mainstem.broker.coordination.groups import GroupCoordinators

        self.loaded_groups = GroupCoordinators(self.server, self.replicas)
        self.loaded_groups.metadata_changed()
        return self.loaded_groups

    @property
    def transactions(self) -> "TransactionCoordinators":
        return self.loaded_transactions if self.loaded_transactions is not None else self._load_transactions()

    def _load_transactions(self) -> "TransactionCoordinators":
        from mainstem.broker.coordination.transactions import TransactionCoordinators

        self.loaded_transactions = TransactionCoordinators(self)
        self.loaded_transactions.metadata_changed()
        return self.loaded_transactions

    @property
    def loaded(self) -> "list[Coordinators[Any]]":
        """Those that are loaded, the ones that need the others first."""
        both = (self.loaded_transactions, self.loaded_groups)
        return [coordinators for coordinators in both if coordinators is not None]

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None:
        if changes.topics or changes.removed_topics or changes.brokers or changes.alters_brokers:
            self.metadata_changed()
        if self.loaded_groups is None and CONSUMER_OFFSETS in image.topics_by_name:
            self._load_groups()
        if self.loaded_transactions is None and TRANSACTION_STATE in image.topics_by_name:
            self._load_transactions()

    def metadata_changed(self) -> None:
        """Topics, partitions that can be used, brokers or settings are other ones now."""
        for coordinators in self.loaded:
            coordinators.metadata_changed()

    def look_again(self) -> None:
        """Partitions can be used that could not before: in the next turn, their coordinators begin."""
        if not self._will_look:
            self._will_look = True
            self.server.loop.call_soon(self._look)

    def _look(self) -> None:
        self._will_look = False
        self.metadata_changed()

    @property
    def problem(self) -> str | None:
        """Why not every client of a coordinator can be served now."""
        for coordinators in self.loaded:
            if coordinators.shell.is_loading:
                return "coordinators are being loaded"
            missing = coordinators.shell.missing
            if missing:
                return f"coordinators could not begin: {len(missing)} of {coordinators.topic}"
        return None

    def close(self) -> None:
        self.producer_ids.close()
        for coordinators in self.loaded:
            coordinators.close()
        self.loaded_groups = self.loaded_transactions = None
