"""DescribeTransactions (key 65): state and partitions of transactions."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage


class DescribeTransactionsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=65, kind="request")
    transactional_ids: list[str] = []


class TopicData(Struct, gc=False):
    topic: str = ""
    partitions: list[I32] = []


class TransactionState(Struct, gc=False):
    error_code: I16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: I32 = 0
    transaction_start_time_ms: I64 = 0
    producer_id: I64 = 0
    producer_epoch: I16 = 0
    topics: list[TopicData] = []


class DescribeTransactionsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=65, kind="response")
    throttle_time_ms: I32 = 0
    transaction_states: list[TransactionState] = []
