"""AlterUserScramCredentials (key 51): set and delete users' SCRAM credentials."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable


class ScramCredentialDeletion(Struct, gc=False):
    name: str = ""
    mechanism: I8 = 0


class ScramCredentialUpsertion(Struct, gc=False):
    name: str = ""
    mechanism: I8 = 0
    iterations: I32 = 0
    salt: bytes = b""
    salted_password: bytes = b""


class AlterUserScramCredentialsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=51, kind="request")
    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Struct, gc=False):
    user: str = ""
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""


class AlterUserScramCredentialsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=51, kind="response")
    throttle_time_ms: I32 = 0
    results: list[AlterUserScramCredentialsResult] = []
