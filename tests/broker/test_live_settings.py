"""Every setting that Mainstem acts on and takes while it runs is in force at once, at every level at which it
can be given; of several values the strongest counts, and they survive restarts.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from mainstem.config.definition import Setting, UpdateMode
from mainstem.config.tables import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from mainstem.testing import Broker
from mainstem.testing.in_process import InProcessBroker
from tests.broker.apis.test_administration import DELETE, SET, describe
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, Topic, alter, create_topic, produce, unique_name
from tests.broker.live_broker_effects import BROKER_EFFECTS, GROUP_EFFECTS
from tests.broker.live_effects import BROKER, TOPIC_EFFECTS, Effect, World

TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE = 2, 4, 32
DYNAMIC = {"topic": 1, "broker": 2, "default": 3, "static": 4, "built in": 5}


def _levels(setting: Setting) -> list[str]:
    """Where a broker's setting can be given while it runs."""
    return ["broker", "all brokers"] if setting.update is UpdateMode.CLUSTER_WIDE else ["broker"]


def _cases() -> Iterator[Any]:
    """Name, level and effect: a topic's settings for the topic and through the broker's, then the others."""
    for name, effect in TOPIC_EFFECTS.items():
        yield pytest.param(name, "topic", effect, id=f"{name}-topic")
        synonym = TOPIC_SETTINGS[name].synonym
        if synonym is not None and BROKER_SETTINGS[synonym].dynamic:
            for level in _levels(BROKER_SETTINGS[synonym]):
                yield pytest.param(synonym, level, effect, id=f"{synonym}-{level}")
    for name, effect in BROKER_EFFECTS.items():
        for level in _levels(BROKER_SETTINGS[name]):
            yield pytest.param(name, level, effect, id=f"{name}-{level}")
    for name, effect in GROUP_EFFECTS.items():
        yield pytest.param(name, "group", effect, id=f"{name}-group")


CASES = list(_cases())


def test_every_setting_that_is_acted_on_and_taken_live_has_a_case() -> None:
    wanted = {
        (setting.scope.value, setting.name)
        for table in (BROKER_SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS)
        for setting in table.values()
        if setting.acted_on and setting.dynamic
    }
    scopes = {"topic": "topic", "group": "group", "broker": "broker", "all brokers": "broker"}
    shown = {(scopes[case.values[1]], case.values[0]) for case in CASES}
    assert shown == wanted


@pytest.fixture(scope="module")
def broker(runner: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    folder = tmp_path_factory.mktemp("live")
    broker = Broker.in_process(BROKER | {"log.dirs": f"{folder / 'one'},{folder / 'two'}"})
    runner.run(broker.start())
    yield broker
    runner.run(broker.close())


@pytest.mark.parametrize(("name", "level", "effect"), CASES)
async def test_a_new_value_is_in_force_at_once(
    broker: InProcessBroker, client: Client, name: str, level: str, effect: Effect
) -> None:
    async def change(value: str | None) -> None:
        kind, resource = {
            "topic": (TOPIC_RESOURCE, world.topic.name),
            "broker": (BROKER_RESOURCE, "1"),
            "all brokers": (BROKER_RESOURCE, ""),
            "group": (GROUP_RESOURCE, world.group),
        }[level]
        operation = SET if value is not None else DELETE
        assert await alter(client, kind, resource, (name, operation, value)) == 0

    topic = await create_topic(client)
    world = World(broker, client, change, topic, unique_name("group"))
    try:
        await effect(world)
    finally:
        await change(None)


# ---- which value counts


async def _limit_in_force(client: Client, topic: Topic) -> tuple[str, int, list[int]]:
    """The largest batch that a topic takes: its value, its source, and the sources that could give it."""
    entry = (await describe(client, TOPIC_RESOURCE, topic.name, "max.message.bytes"))["max.message.bytes"]
    return entry.value, entry.config_source, [synonym.source for synonym in entry.synonyms]


async def test_the_strongest_value_counts_and_all_of_them_survive_a_restart(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"message.max.bytes": 40_000})
    client = await connect(broker)
    topic = await create_topic(client)
    levels = [
        (BROKER_RESOURCE, "", "message.max.bytes", "30000", "default"),
        (BROKER_RESOURCE, "1", "message.max.bytes", "20000", "broker"),
        (TOPIC_RESOURCE, topic.name, "max.message.bytes", "10000", "topic"),
    ]
    sources = [DYNAMIC["static"], DYNAMIC["built in"]]
    assert await _limit_in_force(client, topic) == ("40000", DYNAMIC["static"], sources)
    for kind, resource, name, value, level in levels:
        assert await alter(client, kind, resource, (name, SET, value)) == 0
        sources.insert(0, DYNAMIC[level])
        assert await _limit_in_force(client, topic) == (value, DYNAMIC[level], sources)
        assert (await produce(client, topic, b"x" * (int(value) - 500))).error_code == 0
        assert (await produce(client, topic, b"x" * int(value))).error_code != 0
    await broker.restart()
    client = await connect(broker)
    for kind, resource, name, value, level in reversed(levels):
        assert await _limit_in_force(client, topic) == (value, DYNAMIC[level], sources)
        assert (await produce(client, topic, b"x" * int(value))).error_code != 0
        assert await alter(client, kind, resource, (name, DELETE, None)) == 0
        sources.pop(0)
    assert await _limit_in_force(client, topic) == ("40000", DYNAMIC["static"], sources)


# ---- what nobody acts on


async def test_what_is_not_acted_on_is_kept_shown_and_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await create_topic(client, configs={"leader.replication.throttled.replicas": "*"})
    assert await alter(client, TOPIC_RESOURCE, topic.name, ("local.retention.ms", SET, "5")) == 0
    assert await alter(client, BROKER_RESOURCE, "", ("num.io.threads", SET, "9")) == 0
    for words in (
        f"leader.replication.throttled.replicas=* was set for topic {topic.name}",
        f"local.retention.ms=5 was set for topic {topic.name}",
        "num.io.threads=9 was set for all brokers",
    ):
        assert f"{words}: Mainstem does not act on this setting" in caplog.text
    entry = (await describe(client, TOPIC_RESOURCE, topic.name, "local.retention.ms"))["local.retention.ms"]
    assert entry.value == "5"
    assert entry.documentation.endswith("Mainstem does not act on this setting.")
    caplog.clear()
    assert await alter(client, BROKER_RESOURCE, "", ("num.io.threads", DELETE, None)) == 0
    assert await alter(client, TOPIC_RESOURCE, topic.name, ("retention.ms", SET, "5000")) == 0
    assert "does not act" not in caplog.text
