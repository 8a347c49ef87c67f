"""DeleteRecords (key 21): move the log start offset of partitions forward."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage


class DeleteRecordsPartition(Struct, gc=False):
    partition_index: I32 = 0
    offset: I64 = 0


class DeleteRecordsTopic(Struct, gc=False):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = []


class DeleteRecordsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=21, kind="request")
    topics: list[DeleteRecordsTopic] = []
    timeout_ms: I32 = 0


class DeleteRecordsPartitionResult(Struct, gc=False):
    partition_index: I32 = 0
    low_watermark: I64 = 0
    error_code: I16 = 0


class DeleteRecordsTopicResult(Struct, gc=False):
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = []


class DeleteRecordsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=21, kind="response")
    throttle_time_ms: I32 = 0
    topics: list[DeleteRecordsTopicResult] = []
