"""Settings of groups over the wire: what they are, how they change, what is refused, and who has some."""

from typing import Any

import pytest

from mainstem.protocol.apis import k33_alter_configs as legacy
from mainstem.protocol.apis import k44_incremental_alter_configs as incremental
from mainstem.protocol.apis.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from mainstem.protocol.apis.k74_list_config_resources import ListConfigResourcesRequest
from tests.support.kafka_peer import kafka_tool
from tests.support.shared import session_lock
from tests.support.target import Target, unique_name, when_settled
from tests.support.tool_server import ToolResult
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = 0, 1, 2
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def _describe(client: WireClient, group: str, keys: list[str] | None = None, **fields: Any) -> Any:
    request = DescribeConfigsRequest([DescribeConfigsResource(GROUP, group, keys)], **fields)
    answer = client.call(request)
    for result in answer.results:
        result.configs.sort(key=lambda config: config.name)
    return answer


def _alter(client: WireClient, group: str, *changes: tuple[str, int, str | None], **fields: Any) -> Any:
    configs = [incremental.AlterableConfig(*change) for change in changes]
    resource = incremental.AlterConfigsResource(GROUP, group, configs)
    return client.call(incremental.IncrementalAlterConfigsRequest([resource], **fields))


def _list(client: WireClient, *kinds: int, version: int = 1) -> Any:
    return client.call(ListConfigResourcesRequest(list(kinds)), version)


def test_every_setting_of_a_group(target: Target) -> None:
    transcript = Transcript(target, "describe_group_configs")
    group = transcript.stand_in(unique_name("group"), "group")
    with session_lock("configs"), WireClient(target) as client:
        answer = _describe(client, group, include_synonyms=True, include_documentation=True)
        transcript.note("all of a group that nobody has seen", answer)
        transcript.note("two names, one of them unknown", _describe(client, group, [SESSION, "no.such"]))
        transcript.note("no group", _describe(client, ""))
        changes = [
            (SESSION, SET, "50000"),
            (HEARTBEAT, SET, " 6000 "),
            ("share.auto.offset.reset", SET, "by_duration:PT1H30M"),
            ("streams.num.standby.replicas", SET, "2"),
        ]
        transcript.note("give it some", _alter(client, group, *changes))
        transcript.note_when_settled(
            "all of them again", lambda: _describe(client, group, include_synonyms=True)
        )
        transcript.note("take one away", _alter(client, group, (SESSION, DELETE, None)))
        transcript.note_when_settled(
            "it is the broker's again", lambda: _describe(client, group, [SESSION], include_synonyms=True)
        )
    transcript.check()


def test_what_a_group_cannot_be_given(target: Target) -> None:
    transcript = Transcript(target, "alter_group_configs")
    group = transcript.stand_in(unique_name("group"), "group")
    interval = "consumer.assignment.interval.ms"
    with WireClient(target) as client:
        for name, value in (
            (SESSION, "44999"),
            (SESSION, "60001"),
            (SESSION, "0"),
            (SESSION, "soon"),
            (SESSION, ""),
            (HEARTBEAT, "4999"),
            (HEARTBEAT, "15001"),
            (interval, "15001"),
            ("share.session.timeout.ms", "1"),
            ("share.record.lock.duration.ms", "61000"),
            ("share.delivery.count.limit", "11"),
            ("share.partition.max.record.locks", "99"),
            ("share.auto.offset.reset", "none"),
            ("share.auto.offset.reset", "by_duration:-PT1H"),
            ("share.auto.offset.reset", "by_duration:1h"),
            ("share.isolation.level", "READ_COMMITTED"),
            ("share.renew.acknowledge.enable", "maybe"),
            ("streams.num.standby.replicas", "3"),
            ("streams.initial.rebalance.delay.ms", "-1"),
            ("group.consumer.session.timeout.ms", "50000"),
            ("no.such.config", "1"),
        ):
            transcript.note(f"{name} = {value!r}", _alter(client, group, (name, SET, value)))
        transcript.note("no value", _alter(client, group, (SESSION, SET, None)))
        transcript.note("append to a number", _alter(client, group, (SESSION, APPEND, "1")))
        transcript.note(
            "one of them twice", _alter(client, group, (SESSION, SET, "50000"), (SESSION, DELETE, None))
        )
        transcript.note("delete an unknown one", _alter(client, group, ("no.such.config", DELETE, None)))
        transcript.note("no group", _alter(client, "", (SESSION, SET, "50000")))
        transcript.note("validate only", _alter(client, group, (SESSION, SET, "50000"), validate_only=True))
        transcript.note("nothing", _alter(client, group))
        transcript.note("nothing of it is in force", _describe(client, group, [SESSION, HEARTBEAT]))
        # A setting that stands at its highest is still good, as is a name that no group could have.
        transcript.note(
            "the highest", _alter(client, group, (interval, SET, "15000"), (SESSION, SET, "60000"))
        )
        odd = transcript.stand_in(unique_name("g/ü" * 100), "odd")
        transcript.note("an odd name", _alter(client, odd, (SESSION, SET, "60000")))
    transcript.check()


def test_legacy_changes_replace_everything(target: Target) -> None:
    transcript = Transcript(target, "alter_group_configs_legacy")
    group = transcript.stand_in(unique_name("group"), "group")
    with WireClient(target) as client:

        def alter(title: str, configs: dict[str, str | None]) -> None:
            entries = [legacy.AlterableConfig(key, value) for key, value in configs.items()]
            resource = legacy.AlterConfigsResource(GROUP, group, entries)
            transcript.note(title, client.call(legacy.AlterConfigsRequest([resource])))

        def describe(title: str) -> None:
            transcript.note_when_settled(title, lambda: _describe(client, group, [SESSION, HEARTBEAT]))

        alter("set one", {SESSION: "47000"})
        describe("it is set")
        alter("set another", {HEARTBEAT: "7000"})
        describe("the first is gone")
        alter("an unknown name", {"no.such.config": "1"})
        alter("too low", {HEARTBEAT: "1"})
        alter("no value", {HEARTBEAT: None})
        alter("nothing", {})
        describe("all are gone")
    transcript.check()


def test_who_has_settings(target: Target) -> None:
    transcript = Transcript(target, "list_config_resources")
    topic = target.create_topic()
    group, other = unique_name("group"), unique_name("group")

    def ours(answer: Any) -> list[tuple[int, str]]:
        named = {topic: "<topic>", group: "<group>", str(target.node_id): "<node>"}
        return sorted(
            (resource.resource_type, named[resource.resource_name])
            for resource in answer.config_resources
            if resource.resource_name in named
        )

    with WireClient(target) as client:
        _alter(client, group, (SESSION, SET, "50000"))
        _alter(client, other, (SESSION, SET, "50000"))
        _alter(client, other, (SESSION, DELETE, None))

        def settled(answer: Any) -> bool:
            names = [resource.resource_name for resource in answer.config_resources]
            return group in names and other not in names

        answer = when_settled(lambda: _list(client, GROUP), settled)
        assert settled(answer), "a group is listed while it has settings"
        for kinds in ([], [TOPIC], [BROKER], [BROKER_LOGGER], [CLIENT_METRICS], [GROUP], [GROUP, BROKER]):
            answer = _list(client, *kinds)
            transcript.note(f"of the kinds {kinds}", f"{answer.error_code} {ours(answer)}")
        for kinds in ([0], [TOPIC, 77], [-1]):
            transcript.note(f"of the kinds {kinds}", _list(client, *kinds))
        transcript.note("in version 0", _list(client, version=0))
    transcript.check()


@pytest.mark.peer
def test_kafkas_own_command_sets_and_shows_them(target: Target) -> None:
    group = unique_name("group")

    def command(*arguments: str) -> ToolResult:
        entity = ("--entity-type", "groups", "--entity-name", group)
        address = ("--bootstrap-server", target.bootstrap_servers)
        return kafka_tool("kafka.admin.ConfigCommand", *address, *arguments, *entity)

    added = command("--alter", "--add-config", f"{SESSION}=50000,{HEARTBEAT}=6000").check()
    assert added == f"Completed updating config for group {group}.\n"
    expected = [
        f"Dynamic configs for group {group} are:",
        f"  {HEARTBEAT}=6000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{HEARTBEAT}=6000, "
        f"DEFAULT_CONFIG:group.{HEARTBEAT}=5000}}",
        f"  {SESSION}=50000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{SESSION}=50000, "
        f"DEFAULT_CONFIG:group.{SESSION}=45000}}",
    ]
    described = when_settled(lambda: command("--describe").check(), lambda text: text.count("\n") == 3)
    head, *rest = described.splitlines()
    assert [head, *sorted(rest)] == expected
    refused = command("--alter", "--add-config", f"{SESSION}=1")
    assert refused.returncode == 1
    assert "InvalidConfigurationException" in refused.stderr + refused.stdout
