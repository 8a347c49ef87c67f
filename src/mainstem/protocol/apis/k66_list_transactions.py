"""ListTransactions (key 66): transactions of a coordinator, filtered by state, producer, age, name."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, nullable, versions


class ListTransactionsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=66, kind="request")
    state_filters: list[str] = []
    producer_id_filters: list[I64] = []
    duration_filter: Annotated[I64, versions("1+")] = -1
    transactional_id_pattern: Annotated[str | None, versions("2+"), nullable("2+")] = None


class TransactionState(Struct, gc=False):
    transactional_id: str = ""
    producer_id: I64 = 0
    transaction_state: str = ""


class ListTransactionsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=66, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    unknown_state_filters: list[str] = []
    transaction_states: list[TransactionState] = []
