"""The form in which a setting is declared: one row, its type first.

    INT("num.partitions", 1, at_least(1), ACTED_ON, doc="The number of partitions of a new topic."),

After the name and the default stands whatever is more to say, in any order: a validator, marks, how a
running broker takes a new value, and whose setting it is. This file must never hold a setting itself.
"""

from enum import Enum
from typing import Generic, TypeVar

from mainstem.config.definition import ConfigType, Scope, Setting, UpdateMode
from mainstem.config.validators import Validator

V = TypeVar("V", bool, int, float, str, tuple[str, ...])


class Mark(Enum):
    """What is true of some settings; `Setting` says what each means."""

    ACTED_ON = "acted on"
    FIXED_AT_START = "fixed at start"
    SECURITY = "security"
    UNLISTED = "unlisted"


class Row(Generic[V]):
    """Declares the settings of one type: called with the name, the default and the rest of the row."""

    __slots__ = ("_type",)

    def __init__(self, type_: ConfigType) -> None:
        self._type = type_

    def __call__(
        self,
        name: str,
        default: V | None,
        *facts: Validator | Mark | UpdateMode | Scope,
        doc: str,
        synonym: str | None = None,
        aliases: tuple[str, ...] = (),
    ) -> Setting:
        valid, update, scope = None, UpdateMode.READ_ONLY, Scope.BROKER
        acted_on = fixed_at_start = security = unlisted = False
        for fact in facts:
            if isinstance(fact, Mark):
                acted_on |= fact is ACTED_ON
                fixed_at_start |= fact is FIXED_AT_START
                security |= fact is SECURITY
                unlisted |= fact is UNLISTED
            elif isinstance(fact, UpdateMode):
                update = fact
            elif isinstance(fact, Scope):
                scope = fact
            else:
                valid = fact
        return Setting(
            name,
            self._type,
            default,
            doc,
            valid,
            update,
            acted_on=acted_on,
            fixed_at_start=fixed_at_start,
            scope=scope,
            synonym=synonym,
            aliases=aliases,
            security=security,
            listed=not unlisted,
        )


BOOLEAN = Row[bool](ConfigType.BOOLEAN)
STRING = Row[str](ConfigType.STRING)
INT = Row[int](ConfigType.INT)
SHORT = Row[int](ConfigType.SHORT)
LONG = Row[int](ConfigType.LONG)
DOUBLE = Row[float](ConfigType.DOUBLE)
LIST = Row[tuple[str, ...]](ConfigType.LIST)
CLASS = Row[str](ConfigType.CLASS)
PASSWORD = Row[str](ConfigType.PASSWORD)

ACTED_ON, FIXED_AT_START, SECURITY, UNLISTED = Mark
PER_BROKER, CLUSTER_WIDE = UpdateMode.PER_BROKER, UpdateMode.CLUSTER_WIDE
TOPIC, GROUP = Scope.TOPIC, Scope.GROUP
