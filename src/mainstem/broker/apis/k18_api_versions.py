"""ApiVersions (key 18), versions 0 to 4.

v3 client software name, checked as Kafka does, and feature levels (KIP-584); v4 lets a feature start at
level 0. A version from the future is answered with a version-0 body, error 35 and the versions of this
one API.
"""

import re
from functools import cache
from typing import Final

from mainstem.broker.apis import MODULES, Api, declared
from mainstem.broker.requests.context import RequestContext
from mainstem.cluster.features import SUPPORTED_FEATURES
from mainstem.config.listeners import Listener
from mainstem.protocol.apis.k18_api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.registry import API_KEYS

API: Final = Api("broker", "controller", before_authentication=True)
_PRODUCE: Final = 0
_API_VERSIONS: Final = 18
_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(ctx: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if ctx.version >= 3 and not (
        _SOFTWARE_NAME.fullmatch(request.client_software_name)
        and _SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    image = ctx.server.image
    response = ApiVersionsResponse(api_keys=_served_on(ctx.connection.listener))
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=level.first, max_version=level.last)
        for name, level in SUPPORTED_FEATURES.items()
        if level.first > 0 or ctx.version >= 4
    ]
    response.finalized_features_epoch = max(0, image.offset)
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in sorted(image.features.items())
        if name in SUPPORTED_FEATURES  # a directory that Kafka wrote may hold levels not served here
    ]
    return response


def unsupported_version() -> ApiVersionsResponse:
    """The answer to a version that is not served: the client reads which ones are, and asks again."""
    info = API_KEYS[_API_VERSIONS]
    own = ApiVersion(api_key=info.key, min_version=info.min_version, max_version=info.max_version)
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])


@cache
def _served_on(listener: Listener) -> list[ApiVersion]:
    """What a client may ask for there. Produce is advertised from version 0, see its module."""
    infos = [API_KEYS[key] for key in sorted(MODULES) if declared(key).is_served_on(listener)]
    return [
        ApiVersion(info.key, 0 if info.key == _PRODUCE else info.min_version, info.max_version)
        for info in infos
    ]
