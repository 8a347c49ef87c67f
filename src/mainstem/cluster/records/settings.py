"""Metadata records about the cluster as a whole: settings, feature levels, producer ids, and transactions."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, I64, DataMessage, nullable, tagged


class ConfigRecord(Struct, gc=False):
    """A null value takes the setting away."""

    SCHEMA: ClassVar = DataMessage(record_api_key=4, versions="0", flexible="0+")
    resource_type: I8 = 0
    resource_name: str = ""
    name: str = ""
    value: Annotated[str | None, nullable("0+")] = ""


class FeatureLevelRecord(Struct, gc=False):
    """Level 0 means that the feature is off."""

    SCHEMA: ClassVar = DataMessage(record_api_key=12, versions="0", flexible="0+")
    name: str = ""
    feature_level: I16 = 0


class ProducerIdsRecord(Struct, gc=False):
    """`next_producer_id` is the first id that no block has covered yet."""

    SCHEMA: ClassVar = DataMessage(record_api_key=15, versions="0", flexible="0+")
    broker_id: I32 = 0
    broker_epoch: I64 = -1
    next_producer_id: I64 = 0


class NoOpRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=20, versions="0", flexible="0+")


class ZkMigrationStateRecord(Struct, gc=False):
    """Left in the logs of clusters that once moved away from ZooKeeper; it changes nothing any more."""

    SCHEMA: ClassVar = DataMessage(record_api_key=21, versions="0", flexible="0+")
    zk_migration_state: I8 = 0


class BeginTransactionRecord(Struct, gc=False):
    """What follows takes effect only at the EndTransactionRecord."""

    SCHEMA: ClassVar = DataMessage(record_api_key=23, versions="0", flexible="0+")
    name: Annotated[str | None, nullable("0+"), tagged(0, "0+")] = None


class EndTransactionRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=24, versions="0", flexible="0+")


class AbortTransactionRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=25, versions="0", flexible="0+")
    reason: Annotated[str | None, nullable("0+"), tagged(0, "0+")] = None
