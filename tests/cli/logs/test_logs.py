"""`mainstem logs sizes` and the state of logs in `mainstem topics describe`."""

import json

import pytest

from mainstem.cli.output.units import size_text
from mainstem.testing import Broker
from tests.cli.conftest import Mainstem
from tests.support.target import unique_name


def _filled(mainstem: Mainstem, *options: str) -> str:
    name = unique_name()
    assert mainstem("topics", "create", name, "--partitions", "2", *options).returncode == 0
    messages = "".join(f"key{number % 5}:{'x' * 1000}\n" for number in range(35))
    for _ in range(3):  # a segment holds two of such batches
        done = mainstem("produce", name, "--key-separator", ":", stdin=messages)
        assert done.returncode == 0, done.stderr
    return name


def test_sizes_by_topic_partition_and_directory(mainstem: Mainstem, broker: Broker) -> None:
    topic = _filled(mainstem)
    listed = json.loads(mainstem("logs", "sizes", topic, "--json").stdout)
    total = sum(part["size"] for part in listed["partitions"])
    assert total > 100_000
    assert [directory["problem"] for directory in listed["directories"]] == [None]
    by_topic = mainstem("logs", "sizes", topic, "--bytes").stdout.splitlines()
    assert by_topic[1].split()[:3] == [topic, "2", str(total)]
    by_partition = mainstem("logs", "sizes", topic, "--by", "partition").stdout.splitlines()
    assert [line.split()[0] for line in by_partition[1:]] == [topic, topic]
    assert str(broker.data_dir) in by_partition[1]
    assert by_partition[1].endswith("current")
    by_directory = mainstem("logs", "sizes", "--by", "directory").stdout.splitlines()
    assert str(broker.data_dir) in by_directory[1]
    assert by_directory[1].endswith("online")
    misspelt = mainstem("logs", "sizes", topic + "x")
    assert f"did you mean {topic}?" in misspelt.stderr


def test_a_partition_whose_log_could_not_be_made_is_offline(mainstem: Mainstem, broker: Broker) -> None:
    topic = unique_name()
    in_the_way = broker.data_dir / f"{topic}-1"
    in_the_way.write_text("in the way")
    refused = mainstem("topics", "create", topic, "--partitions", "2")
    assert f"topic {topic} exists, but" in refused.stderr
    offline = json.loads(mainstem("logs", "sizes", topic, "--json").stdout)["partitions"]
    assert [part["offline"] is None for part in offline] == [True, False]
    lines = mainstem("logs", "sizes", topic, "--by", "partition").stdout.splitlines()
    assert sum("offline:" in line for line in lines) == 1
    in_the_way.unlink()
    assert mainstem("topics", "delete", topic, "--yes").returncode == 0


def test_a_topic_is_described_with_sizes_segments_and_its_retention(mainstem: Mainstem) -> None:
    topic = _filled(mainstem, "-c", "internal.segment.bytes=60000", "-c", "retention.bytes=1")
    text = mainstem("topics", "describe", topic).stdout
    assert "kept: for 7d00h and up to 1 B a partition" in text
    (described,) = json.loads(mainstem("topics", "describe", topic, "--json").stdout)
    full = max(described["partitions"], key=lambda part: part["size"])
    assert full["segments"] > 1
    assert full["oldest_segment_ms"] > 0
    assert full["clean_bytes"] is None
    assert described["policy"] == {"cleanup": "delete", "retention_ms": 604800000, "retention_bytes": 1}
    assert "oldest segment goes in 6d23h" in text
    assert "too large" in text


def test_a_compacted_topic_is_described_with_what_is_left_to_do(mainstem: Mainstem) -> None:
    topic = _filled(
        mainstem, "-c", "cleanup.policy=compact", "-c", "internal.segment.bytes=60000",
        "-c", "min.cleanable.dirty.ratio=1",
    )  # fmt: skip
    (described,) = json.loads(mainstem("topics", "describe", topic, "--json").stdout)
    full = max(described["partitions"], key=lambda part: part["size"])
    assert (full["clean_bytes"], full["cleanable_bytes"] > 0, full["uncleanable"]) == (0, True, None)
    text = mainstem("topics", "describe", topic).stdout
    assert "kept: the latest record of each key" in text
    assert "100% to compact" in text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (20 << 20, "20.0 MiB"), (3 << 50, "3072.0 TiB")],
)
def test_sizes_as_people_write_them(count: int, text: str) -> None:
    assert size_text(count) == text
