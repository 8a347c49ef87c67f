"""`mainstem produce` and `mainstem consume`, one feeding the other."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mainstem.cli.command_name import command_name
from mainstem.testing import Broker, Cluster
from tests.cli.command import run_command
from tests.cli.conftest import Mainstem
from tests.cli.group_members import commit
from tests.support.target import unique_name

READ_ALL = ("--from-beginning", "--exit-at-end")


@pytest.fixture
def topic(mainstem: Mainstem) -> str:
    name = unique_name("messages")
    assert mainstem("topics", "create", name, "--partitions", "3").returncode == 0
    return name


def test_lines_come_out_as_they_went_in(mainstem: Mainstem, topic: str) -> None:
    sent = mainstem("produce", topic, "--partition", "0", stdin="one\ntwo\n\nzwölf\n")
    assert sent.returncode == 0
    assert sent.stdout == ""
    assert sent.stderr.startswith("sent 4 messages (12 bytes) in ")
    assert mainstem("consume", topic, *READ_ALL).stdout == "one\ntwo\n\nzwölf\n"


def test_a_topic_is_made_by_the_first_message(mainstem: Mainstem) -> None:
    name = unique_name("auto")
    assert mainstem("produce", name, "--quiet", stdin="hello\n").stderr == ""
    assert mainstem("consume", name, *READ_ALL).stdout == "hello\n"


@pytest.mark.parametrize("form", ["text", "json", "raw"])
def test_an_empty_input_makes_no_topic(mainstem: Mainstem, form: str) -> None:
    name = unique_name("never")
    sent = mainstem("produce", name, "--format", form, stdin="")
    assert sent.returncode == 0
    assert sent.stderr.startswith("sent 0 messages (0 bytes) in ")
    assert name not in mainstem("topics", "list").stdout.splitlines()


def test_a_message_with_a_misspelt_field_is_not_sent(mainstem: Mainstem, topic: str) -> None:
    refused = mainstem("produce", topic, "--format", "json", stdin='{"key": "k", "vaule": "v"}\n')
    assert refused.returncode == 1
    assert refused.stderr.startswith("mainstem: line 1 is not a message in JSON: there is no field 'vaule'")
    assert mainstem("consume", topic, *READ_ALL).stdout == ""


def test_a_header_is_sent_as_often_as_it_is_given(mainstem: Mainstem, topic: str) -> None:
    mainstem("produce", topic, "--header", "h=1", "--header", "h=2", "--header", "h=1", stdin="v\n")
    (message,) = mainstem("consume", topic, *READ_ALL, "--format", "json").stdout.splitlines()
    assert [header["value"] for header in json.loads(message)["headers"]] == ["1", "2", "1"]


def test_keys_go_where_the_java_client_puts_them(mainstem: Mainstem, topic: str) -> None:
    mainstem("produce", topic, "--key-separator", ":", stdin="k1:a\nk2:b\nk3:c\nk4:d\n")
    shown = mainstem("consume", topic, *READ_ALL, "--show", "key,partition").stdout.splitlines()
    # Computed by org.apache.kafka.common.utils.Utils.murmur2 for three partitions.
    assert sorted(shown) == ["k1\t2\ta", "k2\t0\tb", "k3\t1\tc", "k4\t1\td"]


def test_keys_headers_and_nulls(mainstem: Mainstem, topic: str) -> None:
    options = ("--key-separator", r"\t", "--header", "source=test", "--null-marker", "NULL", "--idempotent")
    mainstem("produce", topic, *options, "--partition", "1", stdin="k\tv\nk\tNULL\n")
    printed = mainstem("consume", topic, *READ_ALL, "--format", "json").stdout
    messages = [json.loads(line) for line in printed.splitlines()]
    assert [(m["partition"], m["offset"], m["key"], m["value"]) for m in messages] == [
        (1, 0, "k", "v"),
        (1, 1, "k", None),
    ]
    assert messages[0]["headers"] == [{"name": "source", "value": "test"}]
    assert messages[0]["topic"] == topic


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(mainstem: Mainstem, topic: str, codec: str) -> None:
    lines = "".join(f"line {number}\n" for number in range(500))
    mainstem("produce", topic, "--partition", "2", "--compression", codec, stdin=lines)
    assert mainstem("consume", topic, *READ_ALL).stdout == lines


def test_a_topic_is_copied_through_json(mainstem: Mainstem, topic: str) -> None:
    copy = unique_name("copy")
    mainstem("produce", topic, "--key", "k", "--header", "h=1", stdin="v1\nv2\n")
    exported = mainstem("consume", topic, *READ_ALL, "--format", "json").stdout
    mainstem("produce", copy, "--format", "json", stdin=exported)
    copied = mainstem("consume", copy, *READ_ALL, "--format", "json").stdout
    assert _content(copied) == _content(exported)


def _content(lines: str) -> list[tuple[object, ...]]:
    messages = [json.loads(line) for line in lines.splitlines()]
    return [(m["timestamp"], m["key"], m["value"], m["headers"]) for m in messages]


def test_a_file_travels_as_one_raw_message(
    mainstem: Mainstem, broker: Broker, topic: str, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 400
    (tmp_path / "in").write_bytes(content)
    mainstem("produce", topic, "--format", "raw", "--file", str(tmp_path / "in"))
    received = subprocess.run(
        [sys.executable, "-m", "mainstem", "consume", topic, *READ_ALL, "--format", "raw"],
        env=os.environ | {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert received.stdout == content


def test_where_to_start_and_where_to_stop(mainstem: Mainstem, topic: str) -> None:
    mainstem("produce", topic, "--partition", "0", stdin="".join(f"{number}\n" for number in range(10)))

    def read(*options: str) -> list[str]:
        return mainstem("consume", topic, "--partition", "0", *options).stdout.split()

    assert read("--offset", "7", "-e") == ["7", "8", "9"]
    assert read("--offset", "-1", "-e") == ["9"]
    assert read("--offset", "-2", "-e") == ["8", "9"]
    assert read("--offset", "-99", "-e") == [str(number) for number in range(10)]
    assert read("--from-beginning", "--max-messages", "3") == ["0", "1", "2"]
    assert read("--latest", "-e") == []
    assert read("--from-time", "10m", "-n", "1") == ["0"]
    assert read("--from-time", "2100-01-01", "-e") == []


def test_following_waits_for_messages_to_come(mainstem: Mainstem, broker: Broker, topic: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mainstem", "consume", topic, "-B", "-n", "2"],
        env=os.environ | {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers},
        stdout=subprocess.PIPE,
        text=True,
    ) as follower:
        assert follower.stdout is not None
        mainstem("produce", topic, stdin="first\n")
        assert follower.stdout.readline() == "first\n"
        mainstem("produce", topic, stdin="second\n")
        assert follower.stdout.readline() == "second\n"
        assert follower.wait(30) == 0


def test_what_does_not_exist_is_named(mainstem: Mainstem, topic: str, tmp_path: Path) -> None:
    cases = {
        ("consume", "nothing-like-it"): "there is no topic 'nothing-like-it'",
        ("consume", topic, "--partition", "9"): f"{topic} has no partition 9",
        ("consume", topic, "-p", "0", "--offset", "5", "-e"): "partition 0 does not hold that offset",
        ("produce", topic, "--partition", "9"): f"{topic} has no partition 9: it has 3",
        ("produce", topic, "--file", str(tmp_path / "absent")): "cannot read ",
        ("produce", "bad name"): "bad name: ",
    }
    for arguments, message in cases.items():
        result = mainstem(*arguments, stdin="x\n")
        assert result.returncode == 1, arguments
        assert result.stderr.startswith(f"mainstem: {message}") or message in result.stderr, result.stderr
        assert "Traceback" not in result.stderr


def test_a_message_above_the_limit_says_which_setting_to_raise(mainstem: Mainstem) -> None:
    name = unique_name("small")
    mainstem("topics", "create", name, "--config", "max.message.bytes=1000")
    result = mainstem("produce", name, stdin="x" * 5000)
    assert result.returncode == 1
    assert "1 of 1 messages were not delivered" in result.stderr
    assert "max.message.bytes" in result.stderr


def test_options_that_exclude_each_other(mainstem: Mainstem, topic: str) -> None:
    assert mainstem("consume", topic, "--latest", "--from-beginning").returncode == 2
    assert mainstem("consume", topic, "-e", "-f").returncode == 2
    assert mainstem("consume", topic, "--show", "colour").returncode == 2
    assert mainstem("consume", topic, "--from-time", "soon").returncode == 2


def test_a_reader_that_leaves_early_is_no_error(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    mainstem("produce", topic, stdin="".join(f"{number}\n" for number in range(20_000)))
    command = (
        f"{sys.executable} -m mainstem consume {topic} -B -e | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}"
    )
    piped = subprocess.run(
        ["bash", "-c", command],
        env=os.environ | {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (piped.returncode, piped.stderr) == (0, "")


def test_what_a_message_waits_for_is_said() -> None:
    name = unique_name("waiting")
    with Cluster(2) as cluster:
        environment = {"MAINSTEM_BOOTSTRAP": cluster.address(1)}
        wanted = ("--partitions", "1", "--replication-factor", "2", "--config", "min.insync.replicas=2")
        made = run_command("topics", "create", name, *wanted, environment=environment)
        assert made.returncode == 0, made.stderr
        cluster.stop(2)
        with subprocess.Popen(
            [sys.executable, "-m", "mainstem", "produce", name],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as producing:
            assert producing.stdin is not None
            assert producing.stderr is not None
            producing.stdin.write("v\n")
            producing.stdin.close()
            assert producing.stderr.readline() == (
                "mainstem: still trying: 1 message is not acknowledged yet: "
                f"min.insync.replicas is 2, and {name}-0 has 1 in sync\n"
            )
            run_command("config", "set", "min.insync.replicas=1", "--topic", name, environment=environment)
            assert producing.stderr.readline().startswith("sent 1 message ")
            assert producing.wait(30) == 0


def test_a_topic_of_the_brokers_is_not_written_to(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    commit(broker.bootstrap_servers, unique_name("group"), topic, 0)
    refused = mainstem("produce", "__consumer_offsets", stdin="v\n")
    assert refused.returncode == 1
    assert refused.stderr == (
        "mainstem: __consumer_offsets belongs to the brokers: nobody else may write to it\n"
        f"  -> send to a topic of your own: `{command_name()} topics list` shows them\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("produce", "--partition", "99999999999"),
        ("produce", "--linger", "1e17"),
        ("consume", "--offset", "99999999999999999999999"),
        ("consume", "--from-time", "99999999999999999999999"),
        ("consume", "--partition", "99999999999999999999999"),
    ],
    ids=" ".join,
)
def test_a_number_without_reason_is_refused_in_one_line(
    mainstem: Mainstem, topic: str, arguments: tuple[str, ...]
) -> None:
    refused = mainstem(*arguments, topic, stdin="v\n")
    assert refused.returncode in (1, 2)
    assert refused.stderr.startswith("mainstem: ")
    assert len(refused.stderr.splitlines()) == 2
