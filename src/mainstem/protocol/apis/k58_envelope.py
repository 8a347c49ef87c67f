"""Envelope (key 58): a broker hands a client's request on to the controller, as it came.

The request stands in it with its header, and so does the response in the answer. The principal is encoded
as `security/principal_data.py` has it.
"""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, ApiMessage, nullable


class EnvelopeRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=58, kind="request")
    request_data: bytes = b""
    request_principal: Annotated[bytes | None, nullable("0+")] = b""
    client_host_address: bytes = b""


class EnvelopeResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=58, kind="response")
    response_data: Annotated[bytes | None, nullable("0+")] = None
    error_code: I16 = 0
