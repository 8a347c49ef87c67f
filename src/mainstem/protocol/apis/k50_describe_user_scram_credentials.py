"""DescribeUserScramCredentials (key 50): which SCRAM mechanisms users have, without the secrets."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable


class UserName(Struct, gc=False):
    name: str = ""


class DescribeUserScramCredentialsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=50, kind="request")
    users: Annotated[list[UserName] | None, nullable("0+")] = []


class CredentialInfo(Struct, gc=False):
    mechanism: I8 = 0
    iterations: I32 = 0


class DescribeUserScramCredentialsResult(Struct, gc=False):
    user: str = ""
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    credential_infos: list[CredentialInfo] = []


class DescribeUserScramCredentialsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=50, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    results: list[DescribeUserScramCredentialsResult] = []
