"""AddPartitionsToTxn (key 24): add partitions to a transaction; from v4 in batches between brokers."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, versions


class AddPartitionsToTxnTopic(Struct, gc=False):
    name: str = ""
    partitions: list[I32] = []


class AddPartitionsToTxnTransaction(Struct, gc=False):
    transactional_id: str = ""
    producer_id: I64 = 0
    producer_epoch: I16 = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = []


class AddPartitionsToTxnRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=24, kind="request")
    transactions: Annotated[list[AddPartitionsToTxnTransaction], versions("4+")] = []
    v3_and_below_transactional_id: Annotated[str, versions("0-3")] = ""
    v3_and_below_producer_id: Annotated[I64, versions("0-3")] = 0
    v3_and_below_producer_epoch: Annotated[I16, versions("0-3")] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], versions("0-3")] = []


class AddPartitionsToTxnPartitionResult(Struct, gc=False):
    partition_index: I32 = 0
    partition_error_code: I16 = 0


class AddPartitionsToTxnTopicResult(Struct, gc=False):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


class AddPartitionsToTxnResult(Struct, gc=False):
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = []


class AddPartitionsToTxnResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=24, kind="response")
    throttle_time_ms: I32 = 0
    error_code: Annotated[I16, versions("4+")] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], versions("4+")] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], versions("0-3")] = []
