"""A pipeline that cannot run ends with one clear sentence, and nothing is lost."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from mainstem.testing import Broker
from tests.spark.pipeline.shop import Shop

MESSAGE_BYTES_MAX = 1_048_588  # the default of max.message.bytes
# The tests share a broker: each reads and writes topics of its own.
FILE = """\
pipeline: shop
checkpoint: ./checkpoint
sources:
  orders: {topic: orders, decode: {format: json, schema: id BIGINT}}
sinks:
  out: {from: orders, topic: out, key: id}
"""


def with_topics(source: str, sink: str) -> str:
    return FILE.replace("topic: orders", f"topic: {source}").replace("topic: out", f"topic: {sink}")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def shop(tmp_path: Path, broker: Broker) -> Iterator[Shop]:
    (tmp_path / "shop.yaml").write_text(FILE)
    with Shop(tmp_path, broker) as running:
        yield running


def test_a_topic_that_is_not_there_is_told_before_spark_starts(shop: Shop) -> None:
    shop.produce("order", b"{}")
    code, printed = shop.run("--once")
    assert code == 1
    assert "shop.yaml:4:19: sources.orders: there is no topic 'orders'" in printed
    assert "did you mean order?" in printed
    assert not (shop.folder / "spark.log").exists()


def test_a_broker_that_does_not_answer(shop: Shop) -> None:
    code, printed = shop.run("--once", "-b", "127.0.0.1:1")
    assert code == 1
    assert "127.0.0.1:1" in printed
    assert "Traceback" not in printed
    assert shop.status()["phase"] == "failed"


@pytest.mark.peer
@pytest.mark.timeout(1200)
def test_a_column_that_is_not_there_is_one_sentence_and_the_rest_is_in_the_log(
    shop: Shop, broker: Broker
) -> None:
    shop.produce("columns", b"{}")
    steps = "steps: {big: SELECT idd FROM orders}\n"
    file = with_topics("columns", "refused-out").replace("from: orders", "from: big")
    (shop.folder / "shop.yaml").write_text(file + steps)
    code, printed = shop.run("--once")
    assert code == 1
    started, _, refused = printed.partition("shop: starting Spark\n")
    assert started.startswith("shop: checking topics\n")
    assert refused.splitlines() == [
        "shop.yaml:7:21: steps.big: there is no column 'idd'",
        "  -> did you mean id?",
        "mainstem: 1 mistake in shop.yaml",
    ]
    topics = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10).topics
    assert "refused-out" not in topics  # nothing is made for a pipeline that Spark refuses
    assert '"logger": "SQLQueryContextLogger"' in (shop.folder / "spark.log").read_text()


@pytest.mark.peer
@pytest.mark.timeout(1200)
def test_a_schema_that_the_columns_do_not_fit_is_told_before_a_topic_is_made(
    shop: Shop, broker: Broker
) -> None:
    shop.produce("ids", b'{"id": 1}')
    file = with_topics("ids", "ids-out").replace("key: id}", "encode: avro, schema_file: id.avsc}")
    (shop.folder / "shop.yaml").write_text(file)
    schema = {"type": "record", "name": "Id", "fields": [{"name": "id", "type": "int"}]}
    (shop.folder / "id.avsc").write_text(json.dumps(schema))
    code, printed = shop.run("--once")
    assert code == 1
    assert "shop.yaml:6:66: sinks.out: the column id is BIGINT, which the schema's INT does not" in printed
    topics = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10).topics
    assert "ids-out" not in topics
    (shop.folder / "id.avsc").write_text(json.dumps(schema).replace('"int"', '["null", "long"]'))
    code, printed = shop.run("--once")
    assert code == 0, printed
    assert [message.value() for message in shop.read("ids-out")] == [b"\x02\x02"]  # the branch, then 1


@pytest.mark.peer
@pytest.mark.timeout(1200)
def test_a_bad_record_without_a_place_for_it_stops_the_pipeline_and_is_not_lost(shop: Shop) -> None:
    shop.produce("poison", b'{"id": 1}', b"{bad")
    file = with_topics("poison", "poison-out")
    (shop.folder / "shop.yaml").write_text(file)
    code, printed = shop.run("--once")
    assert code == 1
    assert "out failed: a record for orders cannot be used: not JSON" in printed
    assert "(topic poison, partition 0, offset 1)" in printed
    assert "Traceback" not in printed
    assert shop.read("poison-out") == []
    (shop.folder / "shop.yaml").write_text(file + "dead_letters: poison.dead\n")
    code, printed = shop.run("--once")
    assert code == 0, printed
    assert [message.value() for message in shop.read("poison-out")] == [b'{"id":1}']
    assert [message.value() for message in shop.read("poison.dead")] == [b"{bad"]


@pytest.mark.peer
@pytest.mark.timeout(1200)
def test_a_bad_record_as_large_as_its_topic_allows_becomes_a_dead_letter(shop: Shop) -> None:
    value = b"x" * (MESSAGE_BYTES_MAX - 120)  # the letter has more headers
    producer = Producer({"bootstrap.servers": shop.broker.bootstrap_servers, "message.max.bytes": 2_000_000})
    producer.produce("large", value)
    assert producer.flush(60) == 0
    file = with_topics("large", "large-out") + "dead_letters: large.dead\n"
    (shop.folder / "shop.yaml").write_text(file)
    code, printed = shop.run("--once")
    assert code == 0, printed
    assert [message.value() for message in shop.read("large.dead")] == [value]


@pytest.mark.peer
@pytest.mark.timeout(1200)
def test_a_damaged_checkpoint_is_named_and_nothing_false_is_promised(shop: Shop) -> None:
    shop.produce("damaged", b'{"id": 1}')
    (shop.folder / "shop.yaml").write_text(with_topics("damaged", "damaged-out"))
    code, printed = shop.run("--once")
    assert code == 0, printed
    out = shop.folder / "checkpoint" / "out"
    for name in ("offsets/0", "metadata"):
        kept = (out / name).read_bytes()
        (out / name).write_bytes(b"garbage")
        code, printed = shop.run("--once")
        assert code == 1
        assert f"mainstem: out failed: its checkpoint is damaged: {out / name} cannot be read" in printed
        assert f"remove the folder {out}: out then starts" in printed
        assert "nothing is lost" not in printed
        assert "Traceback" not in printed
        (out / name).write_bytes(kept)


STEP = "steps: {once: {deduplicate: [id], from: orders, within_watermark: false}}\n"


@pytest.mark.peer
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("topic", "chosen"),
    [
        pytest.param("kept", slice(1), id="one damage"),
        pytest.param("kept-well", slice(1, None), id="all others", marks=pytest.mark.soak),
    ],
)
def test_damaged_state_is_named_and_goes_on_when_it_is_restored(
    shop: Shop, topic: str, chosen: slice
) -> None:
    shop.produce(topic, b'{"id": 1}')
    file = with_topics(topic, f"{topic}-out").replace("from: orders", "from: once")
    (shop.folder / "shop.yaml").write_text(file + STEP)
    code, printed = shop.run("--once")
    assert code == 0, printed
    shop.produce(topic, b'{"id": 1}', b'{"id": 2}')
    out = shop.folder / "checkpoint" / "out"
    whole = shop.folder / "whole"
    shutil.copytree(out, whole)
    deltas = sorted(out.glob("state/0/*/1.delta"))
    (schema,) = out.glob("state/0/0/_metadata/schema")
    commits = max(out.glob("commits/[0-9]*"), key=lambda path: int(path.name))
    assert len(deltas) == 2
    damages: list[tuple[Callable[[], object], str]] = [
        (lambda: [path.write_bytes(path.read_bytes()[:9]) for path in deltas], f"a file in {out}/state"),
        (lambda: [path.rename(path.with_suffix(".gone")) for path in deltas], f"{out}/state/0/"),
        (lambda: schema.write_bytes(b"garbage"), f"a schema in {out}/state"),
        (lambda: shutil.rmtree(out / "state"), f"{out}/state cannot be read"),
        (lambda: commits.write_bytes(b"garbage"), f"{commits} cannot be read"),
    ]
    for damage, damaged in damages[chosen]:
        damage()
        code, printed = shop.run("--once")
        assert code == 1, printed
        assert f"mainstem: out failed: its checkpoint is damaged: {damaged}" in printed
        assert f"remove the folder {out}: out then starts" in printed
        assert "nothing is lost" not in printed
        assert "Traceback" not in printed
        shutil.rmtree(out)
        shutil.copytree(whole, out)
    commits.unlink()
    code, printed = shop.run("--once")
    assert code == 1, printed
    assert f"another run writes its checkpoint {out} at the same time, or files are missing" in printed
    (commits.parent / f".{commits.name}.crc").unlink()  # as if the run had ended before it wrote the file
    code, printed = shop.run("--once")
    assert code == 0, printed
    assert sorted(message.value() or b"" for message in shop.read(f"{topic}-out")) == [
        b'{"id":1}',
        b'{"id":2}',
    ]
