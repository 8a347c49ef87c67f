"""Who may do what: the one question that every request handler asks for each resource it touches.

Access control lists are not there yet, so the only authorizer allows everything; the broker refuses to start
when a configuration asks for another one.
"""

from enum import IntEnum
from typing import Final, Protocol

ANONYMOUS: Final = "User:ANONYMOUS"
CLUSTER_NAME: Final = "kafka-cluster"


class Operation(IntEnum):
    """Kafka's ACL operations, with their wire codes."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class ResourceType(IntEnum):
    """Kafka's resource types, with their wire codes."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


OPERATIONS_OF: Final[dict[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
}


class Authorizer(Protocol):
    """Answers whether a principal, from a host, may perform an operation on a resource."""

    generation: int
    """Another one with every change of the rules: an answer may be remembered while it is the same."""

    def authorize(
        self, principal: str, host: str, operation: Operation, resource: ResourceType, name: str
    ) -> bool: ...


class AllowAll:
    """Every principal may do everything."""

    generation = 0

    def authorize(
        self, principal: str, host: str, operation: Operation, resource: ResourceType, name: str
    ) -> bool:
        return True
