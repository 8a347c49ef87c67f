"""`mainstem config`: values, where they come from, and what nobody acts on."""

import json

from mainstem.config.tables import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from tests.cli.conftest import Mainstem
from tests.support.target import unique_name


def _topic(mainstem: Mainstem, *options: str) -> str:
    name = unique_name()
    assert mainstem("topics", "create", name, *options).returncode == 0
    return name


def test_a_topics_setting_is_set_got_and_taken_back(mainstem: Mainstem) -> None:
    topic = _topic(mainstem)
    done = mainstem("config", "set", "retention.ms=3600000", "max.message.bytes=5000", "--topic", topic)
    assert done.stdout.splitlines() == [
        f"set retention.ms=3600000 for topic {topic}",
        f"set max.message.bytes=5000 for topic {topic}",
    ]
    assert done.stderr == ""
    assert mainstem("config", "get", "retention.ms", "-t", topic).stdout == "3600000\n"
    both = mainstem("config", "get", "max.message.bytes", "retention.ms", "-t", topic)
    assert both.stdout == "max.message.bytes=5000\nretention.ms=3600000\n"
    taken = mainstem("config", "unset", "retention.ms", "--topic", topic)
    assert taken.stdout == f"unset retention.ms for topic {topic}: it is 604800000 now\n"
    as_json = mainstem("config", "get", "retention.ms", "-t", topic, "--json")
    assert json.loads(as_json.stdout) == {"retention.ms": "604800000"}


def test_a_setting_is_described_with_everything_that_could_give_it(mainstem: Mainstem) -> None:
    topic = _topic(mainstem, "--config", "segment.bytes=2097152")
    assert mainstem("config", "set", "log.segment.bytes=4194304", "--all-brokers").returncode == 0
    (found,) = json.loads(mainstem("config", "describe", "segment.bytes", "-t", topic, "--json").stdout)
    assert (found["value"], found["source"], found["acted_on"]) == ("2097152", "dynamic topic", True)
    assert [layer["source"] for layer in found["layers"]] == [
        "dynamic topic",
        "dynamic default broker",
        "default",
    ]
    shown = mainstem("config", "describe", "segment.bytes", "-t", topic).stdout
    assert "1048576 or more" in shown
    assert "dynamic default broker: log.segment.bytes=4194304" in shown
    table = mainstem("config", "describe", "-t", topic).stdout.splitlines()
    assert table[1].split() == ["setting", "value", "from", "live", "acted", "on"]
    assert "segment.bytes" in table[2]
    assert len(mainstem("config", "describe", "-t", topic, "--all").stdout.splitlines()) > 25
    broker = mainstem("config", "describe", "log.segment.bytes", "--broker", "1").stdout
    assert "dynamic default broker" in broker
    assert mainstem("config", "get", "log.segment.bytes").stdout == "4194304\n"  # of the broker that answers
    assert "log.segment.bytes  4194304" in mainstem("config", "describe", "--all-brokers").stdout
    taken = mainstem("config", "unset", "log.segment.bytes", "--all-brokers")
    assert taken.stdout == "unset log.segment.bytes for all brokers\n"


def test_a_setting_that_nobody_acts_on_is_kept_with_a_warning(mainstem: Mainstem) -> None:
    topic = _topic(mainstem)
    done = mainstem("config", "set", "local.retention.bytes=1000", "-t", topic)
    assert done.returncode == 0
    assert done.stderr == "warning: local.retention.bytes is kept, but Mainstem does not act on it\n"
    ignored = mainstem("config", "describe", "-t", topic, "--not-acted-on").stdout
    assert "local.retention.bytes" in ignored
    assert "cleanup.policy" not in ignored


def test_every_setting_is_explained_without_a_broker(mainstem: Mainstem) -> None:
    listed = json.loads(mainstem("config", "describe", "--json").stdout)
    assert len(listed) == len(BROKER_SETTINGS) + len(TOPIC_SETTINGS) + len(GROUP_SETTINGS)
    ignored = json.loads(mainstem("config", "describe", "--not-acted-on", "--json").stdout)
    assert {entry["name"] for entry in ignored} >= {"ssl.keystore.location", "remote.storage.enable"}
    assert not any(entry["acted_on"] for entry in ignored)
    card = mainstem("config", "describe", "max.connections.per.ip").stdout
    assert "0 or more" in card
    assert "for one broker or for all of them" in card
    assert "acted on       yes" in card


def test_help_lists_what_a_topic_takes(mainstem: Mainstem) -> None:
    text = mainstem("config", "set", "--help").stdout
    for name in TOPIC_SETTINGS:
        assert name in text


def test_bad_input_is_answered_with_what_is_allowed(mainstem: Mainstem) -> None:
    topic = _topic(mainstem)
    cases = {
        ("set", "retention.ms=soon", "-t", topic): "allowed: -1 or more",
        ("set", "retentoin.ms=1", "-t", topic): "did you mean retention.ms?",
        ("set", "retention.ms=1", "-t", "nowhere"): "There is no topic nowhere",
        ("set", "max.connections=-1", "--broker", "1"): "allowed: 0 or more",
        ("set", "num.partitions=3", "--broker", "1"): "cannot be altered while the broker runs",
        ("set", "no.such=1", "--all-brokers"): "is not a broker setting",
        ("set", "retention.ms", "-t", topic): "is not NAME=VALUE",
        ("set", "retention.ms=1"): "--topic, --group, --broker or --all-brokers",
        ("get", "retention.ms", "-t", topic, "-g", "x"): "one of --topic, --group",
        ("get", "retentoin.ms", "-t", topic): "did you mean retention.ms?",
        ("get", "log.dirs", "--all-brokers"): "was not set for all brokers",
        ("get", "log.dirs", "--broker", "7"): "there is no broker 7",
        ("unset", "retentoin.ms", "-t", topic): "did you mean retention.ms?",
        ("describe", "retentoin.ms"): "did you mean retention.ms?",
    }
    for arguments, words in cases.items():
        refused = mainstem("config", *arguments)
        assert refused.returncode in (1, 2), arguments
        assert words in refused.stderr, (arguments, refused.stderr)
        assert refused.stdout == ""
