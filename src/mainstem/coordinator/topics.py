"""The cluster's topics as a coordinator sees them; the broker shows it its newest metadata this way."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class TopicInfo(NamedTuple):
    name: str
    topic_id: bytes
    partition_count: int


class Topics(Protocol):
    """A view that is always of the newest metadata; `version` grows with every change of it, settings too."""

    @property
    def version(self) -> int: ...

    def by_name(self, name: str) -> TopicInfo | None: ...

    def by_id(self, topic_id: bytes) -> TopicInfo | None: ...

    def names(self) -> Iterable[str]: ...

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        """The racks of the brokers that hold a replica of the partition."""
        ...
