"""CreateDelegationToken (key 38): create a delegation token."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, nullable, versions


class CreatableRenewers(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""


class CreateDelegationTokenRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=38, kind="request")
    owner_principal_type: Annotated[str | None, versions("3+"), nullable("3+")] = ""
    owner_principal_name: Annotated[str | None, versions("3+"), nullable("3+")] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: I64 = 0


class CreateDelegationTokenResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=38, kind="response")
    error_code: I16 = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, versions("3+")] = ""
    token_requester_principal_name: Annotated[str, versions("3+")] = ""
    issue_timestamp_ms: I64 = 0
    expiry_timestamp_ms: I64 = 0
    max_timestamp_ms: I64 = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: I32 = 0
