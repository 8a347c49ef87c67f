"""DescribeLogDirs (key 35): log directories with their space and the replicas in them.

Tags from 10000 on are Mainstem's own. They are in an answer only if the request has asked for them, so that
other clients get exactly what Kafka sends.
"""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, nullable, tagged, versions


class DescribableLogDirTopic(Struct, gc=False):
    topic: str = ""
    partitions: list[I32] = []


class DescribeLogDirsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=35, kind="request")
    topics: Annotated[list[DescribableLogDirTopic] | None, nullable("0+")] = []
    include_log_state: Annotated[bool, tagged(10000, "2+")] = False


class DescribeLogDirsPartition(Struct, gc=False):
    partition_index: I32 = 0
    partition_size: I64 = 0
    offset_lag: I64 = 0
    is_future_key: bool = False
    segment_count: Annotated[I32, tagged(10000, "2+")] = -1
    # The largest timestamp in the oldest segment, from which retention.ms counts.
    oldest_segment_timestamp: Annotated[I64, tagged(10001, "2+")] = -1
    # What compaction has been over, and what it may go over next; -1 where nothing is compacted.
    clean_bytes: Annotated[I64, tagged(10002, "2+")] = -1
    cleanable_bytes: Annotated[I64, tagged(10003, "2+")] = -1
    # Why the log cannot be compacted.
    uncleanable: Annotated[str | None, nullable("2+"), tagged(10004, "2+")] = None
    # Why there is no log, where it could not be made.
    offline: Annotated[str | None, nullable("2+"), tagged(10005, "2+")] = None


class DescribeLogDirsTopic(Struct, gc=False):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Struct, gc=False):
    error_code: I16 = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[I64, versions("4+")] = -1
    usable_bytes: Annotated[I64, versions("4+")] = -1
    is_cordoned: Annotated[bool, versions("5+")] = False


class DescribeLogDirsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=35, kind="response")
    throttle_time_ms: I32 = 0
    error_code: Annotated[I16, versions("3+")] = 0
    results: list[DescribeLogDirsResult] = []
