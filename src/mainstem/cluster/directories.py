"""In which directory of a broker each of its replicas is: what the broker says about it, in records.

With that on record, a broker that starts without one of its directories knows which replicas it lacks, and
does not begin them again, empty, in another one (KIP-858).
"""

from collections.abc import Iterable, Mapping

from mainstem.cluster.features import metadata_version
from mainstem.cluster.image import MetadataImage, PartitionImage
from mainstem.cluster.records import MetadataRecord, PartitionChangeRecord
from mainstem.cluster.records.versions import has_directories
from mainstem.protocol.uuids import ZERO_UUID

# By topic id and partition.
Directories = Mapping[tuple[bytes, int], bytes]


def directory_of(partition: PartitionImage, broker_id: int) -> bytes | None:
    """The id of the directory that a broker's replica is in; None where it is not on record."""
    for replica, directory in zip(partition.replicas, partition.directories, strict=False):
        # Ids with nothing but zeros in front have meanings of their own: not assigned, lost.
        if replica == broker_id and any(directory[:15]):
            return directory
    return None


def assign_directories(
    image: MetadataImage, broker_id: int, directories: Directories
) -> tuple[None, list[MetadataRecord]]:
    """The records that say where the broker's replicas are, as far as the image says something else."""
    records: list[MetadataRecord] = []
    if not has_directories(metadata_version(image)):
        return None, records
    for (topic_id, index), directory in directories.items():
        topic = image.topics_by_id.get(topic_id)
        if topic is None or index >= len(topic.partitions):
            continue  # it was deleted meanwhile
        partition = topic.partitions[index]
        if broker_id in partition.replicas and directory_of(partition, broker_id) != directory:
            changed = dict(zip(partition.replicas, _padded(partition), strict=False)) | {broker_id: directory}
            records.append(
                PartitionChangeRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    directories=[changed[replica] for replica in partition.replicas],
                )
            )
    return None, records


def _padded(partition: PartitionImage) -> Iterable[bytes]:
    missing = len(partition.replicas) - len(partition.directories)
    return (*partition.directories, *(ZERO_UUID,) * missing)
