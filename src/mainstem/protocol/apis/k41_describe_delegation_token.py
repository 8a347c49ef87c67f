"""DescribeDelegationToken (key 41): list delegation tokens by owner."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, nullable, versions


class DescribeDelegationTokenOwner(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""


class DescribeDelegationTokenRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=41, kind="request")
    owners: Annotated[list[DescribeDelegationTokenOwner] | None, nullable("0+")] = []


class DescribedDelegationTokenRenewer(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""


class DescribedDelegationToken(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, versions("3+")] = ""
    token_requester_principal_name: Annotated[str, versions("3+")] = ""
    issue_timestamp: I64 = 0
    expiry_timestamp: I64 = 0
    max_timestamp: I64 = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []


class DescribeDelegationTokenResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=41, kind="response")
    error_code: I16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: I32 = 0
