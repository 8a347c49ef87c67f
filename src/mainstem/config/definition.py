"""The vocabulary in which a setting is declared: its type, default, allowed values, scope and update mode.

One `Setting` is the only place that knows these facts; the broker, DescribeConfigs, the command line and the
documentation page read it. This file must never hold a setting itself.
"""

from enum import Enum, IntEnum
from math import isfinite

from msgspec import Struct

from mainstem.config.validators import Validator

Value = bool | int | float | str | tuple[str, ...] | None


class ConfigError(Exception):
    """A setting that cannot be used; its text is one line that a person can act on. `others` are the settings
    that it contradicts.
    """

    def __init__(self, message: str, setting: str | None = None, *others: str) -> None:
        super().__init__(message)
        self.message = message
        self.setting = setting
        self.others = others


class ConfigType(IntEnum):
    """The type of a value, with the codes that DescribeConfigs uses."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Where a value came from, with the codes that DescribeConfigs uses."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Scope(Enum):
    BROKER = "broker"
    TOPIC = "topic"
    GROUP = "group"


class UpdateMode(Enum):
    """Whether a running broker takes a new value, and if so at which level it may be given."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


# The end of the documentation of every such setting, by which it is known to a client too.
NOT_ACTED_ON = "Mainstem does not act on this setting."

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

_INTEGER_LIMITS = {
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.INT: (-(2**31), INT32_MAX),
    ConfigType.LONG: (-(2**63), INT64_MAX),
}
_BOOLEANS = {"true": True, "false": False}


class Setting(Struct, frozen=True):
    """One setting, declared once."""

    name: str
    type: ConfigType
    default: Value
    doc: str
    valid: Validator | None = None
    update: UpdateMode = UpdateMode.READ_ONLY
    # Truthful for the broker as it is now: giving a setting that is not acted on draws a warning.
    acted_on: bool = False
    # Kafka takes a new value while it runs, and Mainstem only when it starts.
    fixed_at_start: bool = False
    scope: Scope = Scope.BROKER
    # For a topic's or group's: the broker setting that gives its default, its synonym in DescribeConfigs.
    synonym: str | None = None
    aliases: tuple[str, ...] = ()
    # A setting that would protect something: ignoring it silently would be a hole, so the broker refuses it.
    security: bool = False
    # Kafka lists only its public settings in DescribeConfigs; the others appear when somebody sets them.
    listed: bool = True

    @property
    def dynamic(self) -> bool:
        """Whether a running broker takes a new value."""
        return self.scope is not Scope.BROKER or (
            self.update is not UpdateMode.READ_ONLY and not self.fixed_at_start
        )

    @property
    def full_doc(self) -> str:
        """What it is, and whether Mainstem acts on it."""
        return self.doc if self.acted_on else f"{self.doc} {NOT_ACTED_ON}"

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Value:
        """The typed value of `text`, or a ConfigError with the setting, the value and what is allowed."""
        value = self._typed(text)
        problem = None if self.valid is None else self.valid.problem(value)
        if problem is not None:
            raise ConfigError(f"{self.name}: {self._shown(text)} is {problem}{self._hint()}", self.name)
        return value

    def format(self, value: Value) -> str | None:
        """The text form that Kafka gives a typed value."""
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return java_double(value) if isinstance(value, float) else str(value)

    def allowed(self) -> str:
        """What may be given, in words; empty when anything of the type may."""
        return "" if self.valid is None else self.valid.allowed

    def _typed(self, text: str) -> Value:
        kind = self.type
        if kind in _INTEGER_LIMITS:
            return self._integer(text.strip())
        if kind is ConfigType.BOOLEAN:
            truth = _BOOLEANS.get(text.strip().lower())
            if truth is None:
                raise ConfigError(f'{self.name}: "{text}" is neither true nor false', self.name)
            return truth
        if kind is ConfigType.DOUBLE:
            return self._double(text.strip())
        if kind is ConfigType.LIST:
            return split_list(text)
        return text if kind is ConfigType.PASSWORD else text.strip()

    def _integer(self, text: str) -> int:
        digits = text[1:] if text[:1] in ("-", "+") else text
        if not (digits.isascii() and digits.isdigit()):
            raise ConfigError(f'{self.name}: "{text}" is not a whole number{self._hint()}', self.name)
        # Longer digit strings are out of range in any case, and converting them would be slow.
        value = int(text) if len(digits) <= len(str(INT64_MAX)) else 2**64
        low, high = _INTEGER_LIMITS[self.type]
        if not low <= value <= high:
            hint = self._hint() or f"; allowed: {low} to {high}"
            raise ConfigError(f"{self.name}: {text} is out of range{hint}", self.name)
        return value

    def _double(self, text: str) -> float:
        try:
            if "_" in text or not text.isascii():
                raise ValueError
            value = float(text)
        except ValueError:
            raise ConfigError(f'{self.name}: "{text}" is not a number{self._hint()}', self.name) from None
        if not isfinite(value):
            # Kafka takes these, and then computes with them: no comparison and no rate means anything.
            hint = self._hint() or "; allowed: any finite number"
            raise ConfigError(f"{self.name}: {text} is not a finite number{hint}", self.name)
        return value

    def _shown(self, text: str) -> str:
        if self.sensitive:
            return "the given value"
        return text if self.type in _INTEGER_LIMITS or self.type is ConfigType.DOUBLE else f'"{text}"'

    def _hint(self) -> str:
        return f"; allowed: {self.valid.allowed}" if self.valid is not None else ""


def split_list(text: str) -> tuple[str, ...]:
    """The items of a comma-separated list; blank text is the empty list."""
    text = text.strip()
    return tuple(item.strip() for item in text.split(",")) if text else ()


def java_double(value: float) -> str:
    """A double in the digits Java prints, because DescribeConfigs answers are compared as text."""
    magnitude = abs(value)
    if magnitude == 0 or 1e-3 <= magnitude < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    shortest = repr(value)
    digits = shortest.partition("e")[0].replace(".", "").replace("-", "").strip("0") or "0"
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{int(exponent)}"
