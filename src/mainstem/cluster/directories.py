"""Ids of log directories: which replica is in which, and what the ids mean that are no directory's."""

from mainstem.cluster.image import BrokerImage, PartitionImage
from mainstem.protocol.uuids import ONE_UUID, ZERO_UUID, is_reserved

# From before directories were known; one that the broker has yet to choose; one that has failed.
UNKNOWN_DIRECTORY = ZERO_UUID
UNASSIGNED_DIRECTORY = ONE_UUID
LOST_DIRECTORY = bytes(15) + b"\x02"


def directory_of(partition: PartitionImage, broker_id: int) -> bytes | None:
    """The id of the directory that a broker's replica is in; None where it is not on record."""
    for replica, directory in zip(partition.replicas, partition.directories, strict=False):
        if replica == broker_id and not is_reserved(directory):
            return directory
    return None


def default_directory(broker: BrokerImage | None) -> bytes:
    """The directory of a new replica where only one is possible; otherwise the broker says so later."""
    if broker is None or not broker.log_dirs:
        return UNKNOWN_DIRECTORY
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY


def is_online(broker: BrokerImage, directory: bytes) -> bool:
    """Whether a replica can be served from there; one whose directory is not on record counts as if."""
    if is_reserved(directory):
        return directory != LOST_DIRECTORY
    return not broker.log_dirs or directory in broker.log_dirs
