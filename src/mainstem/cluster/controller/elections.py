"""Leaders: who leads when brokers come and go, and the return of the preferred ones.

`settled` is the one rule for all that happens to brokers: what a partition should look like, given those that
are there. It gives the same whatever has happened and however often it is asked, so that a long list of
partitions can be worked off in pieces, and by another controller if need be.
"""

from collections.abc import Iterator

from mainstem.cluster.controller.facts import Facts
from mainstem.cluster.controller.partition_change import Election
from mainstem.cluster.controller.partition_index import Key, PartitionIndex
from mainstem.cluster.directories import UNKNOWN_DIRECTORY, is_online
from mainstem.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from mainstem.cluster.records import MetadataRecord, PartitionChangeRecord


def find(image: MetadataImage, key: Key) -> tuple[TopicImage, PartitionImage] | None:
    """A partition that an index knows, unless it is gone meanwhile."""
    topic = image.topics_by_id.get(key[0])
    if topic is None or key[1] >= len(topic.partitions):
        return None
    return topic, topic.partitions[key[1]]


def settled(facts: Facts, key: Key, damaged: frozenset[int] = frozenset()) -> PartitionChangeRecord | None:
    """What has to change of a partition so that it is led and held by those who can: whoever is not active,
    or has lost the directory, is in sync with nothing. Whoever is not registered any more, or is damaged, is
    not even eligible.
    """
    found = find(facts.image, key)
    if found is None:
        return None
    topic, partition = found
    change = facts.change(topic, partition)
    gone = (r for r in (*partition.isr, *partition.eligible_leader_replicas) if r not in facts.brokers)
    change.damaged = damaged.union(gone)
    change.isr = [
        replica
        for replica, directory in _placed(partition)
        if replica not in change.damaged
        and facts.is_active(replica)
        and is_online(facts.brokers[replica], directory)
    ]
    if facts.allows_unclean_election(topic.name):
        change.election = Election.UNCLEAN
    return change.record()


def _placed(partition: PartitionImage) -> Iterator[tuple[int, bytes]]:
    """The in-sync replicas, in their order, with the directories they are in."""
    places = dict(zip(partition.replicas, partition.directories, strict=False))
    for replica in partition.isr:
        yield replica, places.get(replica, UNKNOWN_DIRECTORY)


def withdrawn(facts: Facts, key: Key, broker_id: int, *, damaged: bool) -> PartitionChangeRecord | None:
    """What changes when a broker begins anew: it is in sync with nothing, and where it may have lost
    something it is not eligible either.
    """
    found = find(facts.image, key)
    if found is None:
        return None
    topic, partition = found
    change = facts.change(topic, partition)
    change.isr = [replica for replica in partition.isr if replica != broker_id]
    if damaged:
        change.damaged = frozenset({broker_id})
    if facts.allows_unclean_election(topic.name):
        change.election = Election.UNCLEAN
    return change.record()


def renewed(facts: Facts, key: Key) -> PartitionChangeRecord | None:
    """A new epoch of a partition whose leader has begun anew without anybody who could lead in its place, or
    its first one after it had no leader.
    """
    found = find(facts.image, key)
    if found is None:
        return None
    topic, partition = found
    change = facts.change(topic, partition)
    change.begins_epoch = partition.leader != NO_LEADER
    if facts.allows_unclean_election(topic.name):
        change.election = Election.UNCLEAN
    return change.record()


def can_lead_elsewhere(facts: Facts, key: Key) -> bool:
    """Whether somebody who is active by these facts has everything of the partition."""
    found = find(facts.image, key)
    if found is None:
        return True
    partition = found[1]
    return any(facts.is_active(r) for r in (*partition.isr, *partition.eligible_leader_replicas))


def rebalanced(facts: Facts, index: PartitionIndex, elections_max: int) -> list[MetadataRecord]:
    """Elections of preferred leaders that are in sync again, up to a number of them."""
    records: list[MetadataRecord] = []
    for key in index.not_preferred:
        found = find(facts.image, key)
        if found is None:
            continue
        topic, partition = found
        preferred = partition.replicas[0]
        if preferred not in partition.isr or not facts.is_active(preferred):
            continue
        change = facts.change(topic, partition)
        change.election = Election.PREFERRED
        record = change.record()
        if record is not None:
            records.append(record)
            if len(records) >= elections_max:
                break
    return records
