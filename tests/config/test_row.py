"""A row declares a setting: what it does not say is as usual, and what it says may come in any order."""

from mainstem.config.definition import ConfigType, Scope, Setting, UpdateMode
from mainstem.config.row import ACTED_ON, CLUSTER_WIDE, FIXED_AT_START, GROUP, INT, LIST, SECURITY, UNLISTED
from mainstem.config.validators import at_least


def test_a_row_with_a_name_and_a_default_is_a_read_only_broker_setting_that_is_not_acted_on() -> None:
    assert INT("some.name", 1, doc="A number.") == Setting("some.name", ConfigType.INT, 1, "A number.")


def test_a_row_says_the_rest_in_any_order() -> None:
    facts = (at_least(1), CLUSTER_WIDE, ACTED_ON, FIXED_AT_START, SECURITY, UNLISTED, GROUP)
    declared = Setting(
        "some.name",
        ConfigType.LIST,
        ("a", "b"),
        "Some words.",
        at_least(1),
        UpdateMode.CLUSTER_WIDE,
        acted_on=True,
        fixed_at_start=True,
        scope=Scope.GROUP,
        synonym="group.some.name",
        aliases=("other.name",),
        security=True,
        listed=False,
    )
    rows = [
        LIST(
            "some.name",
            ("a", "b"),
            *said,
            doc="Some words.",
            synonym="group.some.name",
            aliases=("other.name",),
        )
        for said in (facts, tuple(reversed(facts)))
    ]
    assert rows == [declared, declared]
