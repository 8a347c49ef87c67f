"""One number for all that a group's assignment depends on in the cluster's topics; when it changes, so must
the group's epoch. Zero stands for no topics at all, as in Kafka; otherwise only equality means anything.
"""

from collections.abc import Iterable
from hashlib import blake2b

from mainstem.coordinator.topics import Topics


class MetadataHashes:
    """Hashes each topic once for each version of the metadata."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._version: int | None = None
        self._hashes: dict[str, bytes | None] = {}

    def of(self, names: Iterable[str]) -> int:
        """Of the topics with these names that exist."""
        if self._topics.version != self._version:
            self._version = self._topics.version
            self._hashes.clear()
        hashes = [known for name in sorted(names) if (known := self._topic(name)) is not None]
        if not hashes:
            return 0
        # Never zero: an epoch is written with it, and zero would say that there was nothing to assign.
        return int.from_bytes(blake2b(b"".join(hashes), digest_size=8).digest(), "big", signed=True) or 1

    def _topic(self, name: str) -> bytes | None:
        if name in self._hashes:
            return self._hashes[name]
        info = self._topics.by_name(name)
        digest = None
        if info is not None:
            racks = [
                sorted(self._topics.racks(info.topic_id, number)) for number in range(info.partition_count)
            ]
            description = repr((info.name, info.topic_id, info.partition_count, racks))
            digest = blake2b(description.encode(), digest_size=16).digest()
        self._hashes[name] = digest
        return digest
