"""The driver's commit: one transaction for each batch, a repeated batch found done, others fenced off."""

from dataclasses import replace
from pathlib import Path

import pytest

from mainstem.spark.sink import writer
from mainstem.spark.sink.errors import SinkError
from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.transaction import BatchCommit, Step, commit, commit_steps
from mainstem.wire import Cluster, WireError
from tests.spark.sink.support import (
    KEYED,
    await_markers,
    options_for,
    read_topic,
    read_values,
    rows,
    stage,
    transactional,
)
from tests.support.target import Target, unique_name


@pytest.fixture
def query_id() -> str:
    return unique_name()


@pytest.fixture
def options(target: Target, tmp_path: Path) -> SinkOptions:
    return transactional(
        target.bootstrap_servers, target.create_topic(partitions=2), tmp_path, stagingInlineBytes="500"
    )


def seen(options: SinkOptions, isolation: str = "read_committed") -> list[bytes]:
    return read_values(servers_of(options), options.topic or "", isolation)


def servers_of(options: SinkOptions) -> str:
    ((host, port),) = options.client.bootstrap_servers
    return f"{host}:{port}"


def commit_values(options: SinkOptions, query_id: str, batch_id: int, *tasks: list[bytes]) -> None:
    staged = [stage(options, query_id, batch_id, values) for values in tasks]
    commit(options, query_id, batch_id, staged, remembered=True)
    if options.topic is not None and any(tasks):
        await_markers(servers_of(options), options.topic)


def test_batches_become_visible_one_after_the_other(
    options: SinkOptions, query_id: str, tmp_path: Path
) -> None:
    large = [b"%04d" % number for number in range(300)]
    commit_values(options, query_id, 0, [b"a", b"b"], [], [b"c"])
    assert seen(options) == [b"a", b"b", b"c"]
    commit_values(options, query_id, 1, large, [b"d"])
    assert seen(options) == sorted([b"a", b"b", b"c", b"d", *large])
    assert not list(tmp_path.glob("staging/*/*"))


def test_a_batch_that_is_not_newer_is_skipped(options: SinkOptions, query_id: str, tmp_path: Path) -> None:
    commit_values(options, query_id, 4, [b"first"])
    commit_values(options, query_id, 4, [b"again"] * 100)
    commit_values(options, query_id, 3, [b"older"])
    commit_values(options, query_id, 5, [b"newer"])
    assert seen(options) == [b"first", b"newer"]
    assert not list(tmp_path.glob("staging/*/*"))


def test_a_dead_attempts_files_go_with_the_batch(options: SinkOptions, query_id: str, tmp_path: Path) -> None:
    stage(options, query_id, 3, [b"dead" * 1000])
    assert list(tmp_path.glob("staging/*/*"))
    commit_values(options, query_id, 3, [b"a"])
    assert not list(tmp_path.glob("staging/*/*"))


def test_queries_do_not_know_of_each_other(options: SinkOptions, query_id: str) -> None:
    commit_values(options, query_id, 9, [b"one"])
    commit_values(options, unique_name(), 0, [b"other"])
    assert seen(options) == [b"one", b"other"]


def test_a_batch_without_rows_asks_no_broker(tmp_path: Path) -> None:
    options = transactional("127.0.0.1:1", "any", tmp_path)
    commit_values(options, "q", 0, [], [])


def test_every_step_is_told_in_order(options: SinkOptions, query_id: str) -> None:
    staged = [stage(options, query_id, 0, [b"x" * 1000])]
    with Cluster(options.client) as cluster:
        batch = BatchCommit(options, query_id, 0, staged)
        assert list(commit_steps(cluster, batch)) == list(Step)
        assert list(commit_steps(cluster, batch)) == [
            Step.PRODUCER_TAKEN,
            Step.BATCH_ID_READ,
            Step.STAGING_REMOVED,
        ]


def test_nothing_is_visible_before_the_end(options: SinkOptions, query_id: str) -> None:
    with Cluster(options.client) as cluster:
        steps = commit_steps(
            cluster, BatchCommit(options, query_id, 0, [stage(options, query_id, 0, [b"a"])])
        )
        for step in steps:
            assert seen(options) == ([b"a"] if step in (Step.ENDED, Step.STAGING_REMOVED) else [])
            if step is Step.APPENDED:
                assert seen(options, "read_uncommitted") == [b"a"]


@pytest.mark.parametrize("stalled", [Step.BATCH_ID_READ, Step.APPENDED, Step.BATCH_ID_WRITTEN])
def test_a_run_that_was_taken_for_dead_cannot_write(
    options: SinkOptions, query_id: str, stalled: Step
) -> None:
    """It stops at any step, another run commits the batch, and then it goes on."""
    staged = [stage(options, query_id, 0, [b"a"])]
    with Cluster(options.client) as cluster:
        zombie = commit_steps(cluster, BatchCommit(options, query_id, 0, staged))
        while next(zombie) is not stalled:
            pass
        commit(options, query_id, 0, staged, remembered=True)
        with pytest.raises(WireError):
            list(zombie)
    assert seen(options) == [b"a"]


def test_a_run_that_slept_before_it_looked_finds_the_batch_done(options: SinkOptions, query_id: str) -> None:
    staged = [stage(options, query_id, 0, [b"a"])]
    with Cluster(options.client) as cluster:
        slow = commit_steps(cluster, BatchCommit(options, query_id, 0, staged))
        assert next(slow) is Step.PRODUCER_TAKEN
        commit(options, query_id, 0, staged, remembered=True)
        await_markers(servers_of(options), options.topic or "")
        assert list(slow) == [Step.BATCH_ID_READ, Step.STAGING_REMOVED]
    assert seen(options) == [b"a"]


def test_a_failed_append_aborts_at_once(
    options: SinkOptions, query_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers do not wait for the transaction's timeout, and the batch can be committed afterwards."""
    monkeypatch.setattr("mainstem.spark.sink.transaction._APPEND_BYTES", 1)
    missing = replace(stage(options, query_id, 0, [b"b"]), inline=None, path="not/there")
    staged = [stage(options, query_id, 0, [value]) for value in (b"a", b"b")] + [missing]
    with pytest.raises(SinkError, match="not/there cannot be read"):
        commit(options, query_id, 0, staged, remembered=True)
    assert seen(options) == []
    commit_values(options, query_id, 0, [b"c"])
    assert seen(options) == [b"c"]


def test_several_topics_are_written_together(target: Target, tmp_path: Path, query_id: str) -> None:
    """The batch id is kept with each, so that it outlives a topic that is deleted."""
    options = transactional(target.bootstrap_servers, "unused", tmp_path)
    topics = [target.create_topic() for _ in range(2)]
    for _ in range(2):
        staged = [stage(replace(options, topic=topic), query_id, 7, [topic.encode()]) for topic in topics]
        commit(options, query_id, 7, staged, remembered=True)
    for topic in topics:
        assert read_values(target.bootstrap_servers, topic) == [topic.encode()]


def test_a_timeout_that_the_broker_forbids_says_what_to_set(options: SinkOptions, query_id: str) -> None:
    forbidden = replace(options, transaction_timeout_ms=2_000_000_000)
    with pytest.raises(SinkError, match=r"set kafka\.transaction\.timeout\.ms"):
        commit_values(forbidden, query_id, 0, [b"a"])


def test_many_portions_keep_their_order(
    options: SinkOptions, query_id: str, monkeypatch: pytest.MonkeyPatch, target: Target
) -> None:
    """A batch that is larger than what the driver holds at a time."""
    monkeypatch.setattr("mainstem.spark.sink.transaction._APPEND_BYTES", 3_000)
    values = [b"%06d" % number for number in range(5_000)]
    narrow = replace(options, batch_bytes=1_000)
    staged = [stage(narrow, query_id, 0, values[start : start + 500]) for start in range(0, 5_000, 500)]
    with Cluster(options.client) as cluster:
        steps = list(commit_steps(cluster, BatchCommit(narrow, query_id, 0, staged)))
    assert steps.count(Step.APPENDED) > 10
    found = read_topic(target.bootstrap_servers, options.topic or "")
    assert sorted(message.value or b"" for messages in found.values() for message in messages) == values


def test_a_batch_write_is_one_transaction(target: Target, tmp_path: Path) -> None:
    topic = target.create_topic()
    given = options_for(target.bootstrap_servers, topic, exactlyOnce="true", stagingLocation=str(tmp_path))
    write = writer(KEYED, given, False)
    messages = [write.write(iter([rows([value])])) for value in (b"a", b"b")]
    assert read_values(target.bootstrap_servers, topic, "read_uncommitted") == []
    write.commit([*messages])
    assert read_values(target.bootstrap_servers, topic) == [b"a", b"b"]


def test_an_aborted_batch_write_leaves_nothing(target: Target, tmp_path: Path) -> None:
    topic = target.create_topic()
    given = options_for(target.bootstrap_servers, topic, exactlyOnce="true", stagingLocation=str(tmp_path))
    write = writer(KEYED, {**given, "stagingInlineBytes": "0"}, False)
    message = write.write(iter([rows([b"a"])]))
    assert list(tmp_path.glob("*/*/*"))
    write.abort([message, None])
    assert not list(tmp_path.glob("*/*"))
    assert read_values(target.bootstrap_servers, topic, "read_uncommitted") == []


def test_a_version_of_an_application_is_written_once(target: Target, tmp_path: Path, query_id: str) -> None:
    topic = target.create_topic()
    given = options_for(target.bootstrap_servers, topic, exactlyOnce="true", stagingLocation=str(tmp_path))
    for version, value in [("3", b"a"), ("3", b"again"), ("4", b"b")]:
        write = writer(KEYED, {**given, "txnAppId": query_id, "txnVersion": version}, False)
        write.commit([write.write(iter([rows([value])]))])
    assert read_values(target.bootstrap_servers, topic) == [b"a", b"b"]
