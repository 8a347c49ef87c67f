"""The tables declare every setting of Kafka 4.3 with its type, default, range and update mode, once each."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from mainstem.config.definition import Setting
from mainstem.config.tables import (
    BROKER_ALIASES,
    BROKER_GROUPS,
    BROKER_SETTINGS,
    TOPIC_ALIASES,
    TOPIC_SETTINGS,
    own,
)
from mainstem.config.validators import EachOf, OneOf, Range

# Kafka demands that these are given; Mainstem starts without them.
_OWN_DEFAULTS = {"process.roles", "node.id", "controller.listener.names"}
# Names from Kafka's past, and names that exist only where somebody alters them.
_NOT_IN_KAFKAS_TABLE = {
    "quota.producer.default",
    "quota.consumer.default",
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    *(setting.name for setting in own.SETTINGS),
}


class Fact(NamedTuple):
    scope: str
    name: str
    type: str
    default: str
    allowed: str
    update: str
    visibility: str

    def setting(self) -> Setting:
        return (TOPIC_SETTINGS if self.scope == "topic" else BROKER_SETTINGS)[self.name]


def _facts() -> list[Fact]:
    lines = (Path(__file__).parent / "data" / "kafka_settings.tsv").read_text().splitlines()
    return [Fact(*line.split("\t")) for line in lines if not line.startswith("#")]


FACTS = _facts()


def test_exactly_kafkas_names_are_declared() -> None:
    assert {fact.name for fact in FACTS if fact.scope == "topic"} == set(TOPIC_SETTINGS)
    assert {fact.name for fact in FACTS if fact.scope == "broker"} == set(
        BROKER_SETTINGS
    ) - _NOT_IN_KAFKAS_TABLE


def test_no_setting_is_declared_twice() -> None:
    assert sum(len(settings) for _, settings in BROKER_GROUPS) == len(BROKER_SETTINGS)


def test_types_and_visibility_are_kafkas() -> None:
    wrong = [
        fact
        for fact in FACTS
        if fact.setting().type.name != fact.type or fact.setting().listed is (fact.visibility == "internal")
    ]
    assert wrong == []


def test_defaults_are_kafkas() -> None:
    wrong = [
        (fact.name, fact.setting().default)
        for fact in FACTS
        if fact.name not in _OWN_DEFAULTS
        and (fact.setting().format(fact.setting().default) or "") != fact.default.replace("<null>", "")
    ]
    assert wrong == []
    null_defaults = {fact.name for fact in FACTS if fact.default == "<null>"}
    assert {fact.name for fact in FACTS if fact.setting().default is None} == null_defaults


def test_update_modes_are_kafkas() -> None:
    broker = [fact for fact in FACTS if fact.scope == "broker"]
    assert [fact for fact in broker if fact.setting().update.value != fact.update] == []


def test_numeric_ranges_are_kafkas() -> None:
    checked = 0
    for fact in FACTS:
        found = re.fullmatch(r"\[(-?[\d.]+?),\.\.\.(?:,(-?[\d.]+))?\](?: or (-1))?", fact.allowed)
        valid = fact.setting().valid
        assert isinstance(valid, Range) == (found is not None), fact
        if found is not None and isinstance(valid, Range):
            low, high, also = (None if part is None else float(part) for part in found.groups())
            assert (valid.low, valid.high, valid.also) == (low, high, also), fact
            checked += 1
    assert checked > 200


def test_words_are_kafkas() -> None:
    for fact in FACTS:
        found = re.search(r"\[([A-Za-z_, 0-9]+)\]$", fact.allowed)
        valid = fact.setting().valid
        if isinstance(valid, OneOf | EachOf) or (found is not None and "partitionId" not in fact.allowed):
            assert found is not None, fact
            assert isinstance(valid, OneOf | EachOf), fact
            words = [word.lower() for word in found[1].split(", ")]
            assert sorted(word.lower() for word in valid.words) == sorted(words), fact


@pytest.mark.parametrize("settings", [BROKER_SETTINGS, TOPIC_SETTINGS])
def test_every_default_passes_its_own_rule(settings: dict[str, Setting]) -> None:
    for setting in settings.values():
        text = setting.format(setting.default)
        if text:
            assert setting.parse(text) == setting.default


@pytest.mark.parametrize("settings", [BROKER_SETTINGS, TOPIC_SETTINGS])
def test_every_setting_has_one_sentence_of_documentation(settings: dict[str, Setting]) -> None:
    for setting in settings.values():
        assert re.fullmatch(r"[A-Z*].{10,110}\.", setting.doc), setting.name
        assert ". " not in setting.doc, setting.name


def test_topic_synonyms_name_broker_settings_of_the_same_type() -> None:
    for setting in TOPIC_SETTINGS.values():
        if setting.synonym is not None:
            assert BROKER_SETTINGS[setting.synonym].type is setting.type, setting.name


def test_the_topic_setting_is_acted_on_where_its_broker_setting_is() -> None:
    for setting in TOPIC_SETTINGS.values():
        if setting.synonym is not None:
            assert BROKER_SETTINGS[setting.synonym].acted_on == setting.acted_on, setting.name


def test_every_tls_and_sasl_setting_is_a_protection() -> None:
    named = {name for name in BROKER_SETTINGS if name.startswith(("ssl.", "sasl.", "authorizer."))}
    assert named
    assert [name for name in named if not BROKER_SETTINGS[name].security] == []


def test_no_protection_claims_to_be_acted_on() -> None:
    assert [s.name for s in BROKER_SETTINGS.values() if s.security and s.acted_on] == []


def test_aliases_do_not_hide_a_real_name() -> None:
    assert not set(BROKER_ALIASES) & set(BROKER_SETTINGS)
    assert not set(TOPIC_ALIASES) & set(TOPIC_SETTINGS)
    assert BROKER_ALIASES["replication.factor"] == "default.replication.factor"
    assert BROKER_ALIASES["unclean.leader.election"] == "unclean.leader.election.enable"
    assert TOPIC_ALIASES["unclean.leader.election"] == "unclean.leader.election.enable"
