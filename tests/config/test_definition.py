"""A declared setting turns text into a typed value, or says in one line why it cannot."""

import pytest

from mainstem.config.definition import ConfigError, ConfigType, Setting, Value, java_double, split_list
from mainstem.config.validators import Validator, at_least, between


def _setting(kind: ConfigType, valid: Validator | None = None) -> Setting:
    return Setting("some.name", kind, None, "A setting.", valid)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.INT, " 42 ", 42),
        (ConfigType.INT, "+7", 7),
        (ConfigType.LONG, "-9223372036854775808", -(2**63)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.BOOLEAN, "TRUE", True),
        (ConfigType.BOOLEAN, " false", False),
        (ConfigType.DOUBLE, "1e3", 1000.0),
        (ConfigType.STRING, "  text ", "text"),
        (ConfigType.PASSWORD, " secret ", " secret "),
        (ConfigType.LIST, "a, b ,c", ("a", "b", "c")),
        (ConfigType.LIST, "  ", ()),
    ],
)
def test_text_becomes_a_typed_value(kind: ConfigType, text: str, value: Value) -> None:
    parsed = _setting(kind).parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ConfigType.INT, "2147483648"),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.LONG, "9" * 5000),
        (ConfigType.SHORT, "-32769"),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "5.0"),
        (ConfigType.INT, ""),
        (ConfigType.INT, "-"),
        (ConfigType.INT, "\u0665"),
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.BOOLEAN, ""),
        (ConfigType.DOUBLE, "1_0"),
        (ConfigType.DOUBLE, "half"),
        (ConfigType.DOUBLE, "\u0665"),
    ],
)
def test_text_of_the_wrong_type_is_refused_with_the_settings_name(kind: ConfigType, text: str) -> None:
    with pytest.raises(ConfigError, match=r"^some\.name: ") as raised:
        _setting(kind).parse(text)
    assert raised.value.setting == "some.name"
    assert "\n" not in raised.value.message


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "inf", "1e999"])
@pytest.mark.parametrize(
    ("valid", "allowed"), [(None, "any finite number"), (between(0, 1), "0 to 1"), (at_least(0), "0 or more")]
)
def test_numbers_that_are_not_finite_are_refused_with_the_range(
    text: str, valid: Validator | None, allowed: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        _setting(ConfigType.DOUBLE, valid).parse(text)
    assert raised.value.message == f"some.name: {text} is not a finite number; allowed: {allowed}"


def test_a_value_out_of_range_is_refused_with_name_value_and_range() -> None:
    with pytest.raises(ConfigError) as raised:
        _setting(ConfigType.INT, between(1, 17)).parse("18")
    assert raised.value.message == "some.name: 18 is out of range; allowed: 1 to 17"


def test_a_value_that_the_type_cannot_hold_is_refused_with_the_settings_own_range() -> None:
    with pytest.raises(ConfigError) as raised:
        _setting(ConfigType.INT, at_least(1)).parse("99999999999")
    assert raised.value.message == "some.name: 99999999999 is out of range; allowed: 1 or more"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1e9, "1.0E9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-12345678.9, "-1.23456789E7"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (120000000.0, "1.2E8"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_double(value) == text


def test_typed_values_are_written_as_kafka_writes_them() -> None:
    setting = _setting(ConfigType.STRING)
    assert [setting.format(value) for value in (None, True, False, 5, ("a", "b"), (), "x")] == [
        None,
        "true",
        "false",
        "5",
        "a,b",
        "",
        "x",
    ]


def test_only_passwords_are_sensitive() -> None:
    assert _setting(ConfigType.PASSWORD).sensitive
    assert not _setting(ConfigType.STRING).sensitive


def test_blank_items_of_a_list_are_kept_for_the_validator_to_refuse() -> None:
    assert split_list("a,,b,") == ("a", "", "b", "")
