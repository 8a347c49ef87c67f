"""DescribeConfigs (key 32), versions 1 to 4, for topics, groups and this broker.

v3 types and documentation. Values, sources and synonyms come from the one declaration of each setting. Other
resource types (client metrics, loggers) are refused with a message.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.cluster.topic_names import name_problem
from mainstem.config import (
    ConfigEntry,
    describe_broker,
    describe_cluster_default,
    describe_group,
    describe_topic,
)
from mainstem.protocol.apis.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import ConfigResourceType
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker", "controller")


def handle(ctx: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    response = DescribeConfigsResponse()
    for resource in request.resources:
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        try:
            wanted = set(resource.configuration_keys or ())  # none named means all
            result.configs = [
                _entry(entry, request)
                for entry in _entries(ctx, resource)
                if not wanted or entry.name in wanted
            ]
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message or error.code.message
        response.results.append(result)
    return response


def _entries(ctx: RequestContext, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    server = ctx.server
    if resource.resource_type == ConfigResourceType.TOPIC:
        name = resource.resource_name
        if not ctx.authorize(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if name_problem(name) is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, name_problem(name))
        if name not in server.image.topics_by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return describe_topic(server.config, server.image.topic_config(name))
    if resource.resource_type == ConfigResourceType.BROKER:
        if not ctx.authorize(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return _broker_entries(ctx, resource.resource_name)
    if resource.resource_type == ConfigResourceType.GROUP:
        return _group_entries(ctx, resource.resource_name)
    raise KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"configurations of resource type {resource.resource_type} are not kept here",
    )


def _group_entries(ctx: RequestContext, name: str) -> list[ConfigEntry]:
    """A group need not exist to have settings."""
    if not ctx.authorize(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, name):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a group's name cannot be empty")
    return describe_group(ctx.server.config, ctx.server.image.config(ConfigResourceType.GROUP, name))


def _broker_entries(ctx: RequestContext, name: str) -> list[ConfigEntry]:
    server = ctx.server
    if name == "":
        return describe_cluster_default(server.config)
    if name != str(server.node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"broker {name!r} was asked of broker {server.node_id}; ask that broker itself",
        )
    return describe_broker(server.config)


def _entry(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=entry.name,
        value=None if entry.sensitive else entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        config_type=entry.type,
        documentation=entry.doc if request.include_documentation else None,
    )
    if request.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(
                name=synonym.name, value=None if entry.sensitive else synonym.value, source=synonym.source
            )
            for synonym in entry.synonyms
        ]
    return result
