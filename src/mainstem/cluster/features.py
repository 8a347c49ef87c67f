"""Feature levels: what this version of Mainstem can read, and what a new cluster is finalized at.

A level is raised here only when the handlers that it promises to clients are there.
"""

from mainstem.cluster.image import FeatureRange, MetadataImage

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"

# Kafka 4.3-IV0, and the oldest level whose logs Kafka 4.3 still reads.
METADATA_VERSION_LEVEL = 30
_METADATA_VERSION_FIRST = 7
# Level 1: the voters, with their directory ids, are recorded in the log.
KRAFT_VERSION_LEVEL = 1
# Level 1: the consumer protocol of KIP-848.
GROUP_VERSION_LEVEL = 1
# Level 2: every transaction has a producer epoch of its own, and the broker adds its partitions (KIP-890).
TRANSACTION_VERSION_LEVEL = 2
# Level 1: replicas that have everything stay eligible although they are not in sync (KIP-966).
ELIGIBLE_LEADER_REPLICAS_VERSION_LEVEL = 1

SUPPORTED_FEATURES: dict[str, FeatureRange] = {
    METADATA_VERSION: FeatureRange(_METADATA_VERSION_FIRST, METADATA_VERSION_LEVEL),
    KRAFT_VERSION: FeatureRange(0, KRAFT_VERSION_LEVEL),
    GROUP_VERSION: FeatureRange(0, GROUP_VERSION_LEVEL),
    TRANSACTION_VERSION: FeatureRange(0, TRANSACTION_VERSION_LEVEL),
    ELIGIBLE_LEADER_REPLICAS_VERSION: FeatureRange(0, ELIGIBLE_LEADER_REPLICAS_VERSION_LEVEL),
}


def metadata_version(image: MetadataImage) -> int:
    """The finalized level, at which records are written; that of a new cluster while there is none."""
    return image.features.get(METADATA_VERSION, METADATA_VERSION_LEVEL)
