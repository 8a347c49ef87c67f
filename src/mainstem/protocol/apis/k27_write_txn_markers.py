"""WriteTxnMarkers (key 27): a transaction coordinator writes commit and abort markers to partitions."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, I64, ApiMessage, versions


class WritableTxnMarkerTopic(Struct, gc=False):
    name: str = ""
    partition_indexes: list[I32] = []


class WritableTxnMarker(Struct, gc=False):
    producer_id: I64 = 0
    producer_epoch: I16 = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: I32 = 0
    transaction_version: Annotated[I8, versions("2+")] = 0


class WriteTxnMarkersRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=27, kind="request")
    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0


class WritableTxnMarkerTopicResult(Struct, gc=False):
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Struct, gc=False):
    producer_id: I64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


class WriteTxnMarkersResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=27, kind="response")
    markers: list[WritableTxnMarkerResult] = []
