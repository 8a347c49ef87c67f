"""kcat: produce, consume, list and query, as somebody at a terminal would."""

import json
import subprocess

import pytest

from tests.support.kafka_peer import program
from tests.support.target import Target

pytestmark = pytest.mark.peer


def _kcat(target: Target, *arguments: str, stdin: str = "") -> str:
    result = subprocess.run(
        [program("kcat"), "-b", target.bootstrap_servers, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "zstd"])
def test_keys_headers_and_nulls_survive(target: Target, topic: str, codec: str) -> None:
    lines = "k1:one\nk2:\n:three\nk4:four\n"
    _kcat(target, "-P", "-t", topic, "-K:", "-Z", "-H", "from=kcat", "-z", codec, stdin=lines)
    output = _kcat(target, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J")
    messages = [json.loads(line) for line in output.splitlines()]
    assert [(message["key"], message["payload"]) for message in messages] == [
        ("k1", "one"),
        ("k2", None),
        (None, "three"),
        ("k4", "four"),
    ]
    assert [message["offset"] for message in messages] == [0, 1, 2, 3]
    assert all(message["headers"] == ["from", "kcat"] for message in messages)


def test_offsets_from_the_end_and_by_time(target: Target, topic: str) -> None:
    _kcat(target, "-P", "-t", topic, stdin="".join(f"m{number}\n" for number in range(10)))
    last = _kcat(target, "-C", "-t", topic, "-o", "-3", "-e", "-q", "-f", "%o %s\\n")
    assert last.splitlines() == ["7 m7", "8 m8", "9 m9"]
    middle = _kcat(target, "-C", "-t", topic, "-o", "4", "-c", "2", "-q", "-f", "%o %s\\n")
    assert middle.splitlines() == ["4 m4", "5 m5"]
    timestamp = _kcat(target, "-C", "-t", topic, "-o", "beginning", "-c", "1", "-q", "-f", "%T")
    assert f"{topic} [0] offset 0" in _kcat(target, "-Q", "-t", f"{topic}:0:{timestamp}")
    assert f"{topic} [0] offset 10" in _kcat(target, "-Q", "-t", f"{topic}:0:-1")


def test_metadata_names_the_topic_its_leader_and_the_broker(target: Target) -> None:
    topic = target.create_topic(partitions=3)
    metadata = json.loads(_kcat(target, "-L", "-J", "-t", topic))
    assert [broker["name"] for broker in metadata["brokers"]] == [target.bootstrap_servers]
    node = metadata["brokers"][0]["id"]
    assert metadata["controllerid"] == node
    (described,) = metadata["topics"]
    assert described["topic"] == topic
    assert described["partitions"] == [
        {"partition": number, "leader": node, "replicas": [{"id": node}], "isrs": [{"id": node}]}
        for number in range(3)
    ]
