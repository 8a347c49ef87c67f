"""The driver or the broker dies after each step of a commit; the batch is replayed; every row is there once.

Where the broker dies, what is staged is appended in three portions, so that it dies between appends, too.
"""

import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.staging import Staged
from mainstem.spark.sink.transaction import BatchCommit, Step, commit, commit_steps
from mainstem.testing import Broker
from mainstem.wire import Cluster
from tests.spark.sink.support import read_values, stage, transactional
from tests.support.target import Target, unique_name

BEFORE = [b"before-%d" % number for number in range(10)]
ROWS = [b"%04d" % number for number in range(2_000)]
TASKS = 3
STEPS = [
    Step.PRODUCER_TAKEN,
    Step.BATCH_ID_READ,
    Step.APPENDED,
    Step.APPENDED,
    Step.APPENDED,
    Step.BATCH_ID_WRITTEN,
    Step.ENDED,
    Step.STAGING_REMOVED,
]
DRIVER = Path(__file__).with_name("sink_commit_main.py")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def options(broker: Broker, tmp_path: Path) -> SinkOptions:
    topic = Target("mainstem", broker.bootstrap_servers, broker.data_dir).create_topic(partitions=2)
    return transactional(
        broker.bootstrap_servers,
        topic,
        tmp_path,
        stagingInlineBytes="1000",
        **{"kafka.batch.size": "4000000"},
    )


@pytest.fixture
def query_id(options: SinkOptions) -> str:
    """A query that has written its batch 0."""
    query_id = unique_name()
    commit(options, query_id, 0, [stage(options, query_id, 0, BEFORE)], remembered=True)
    return query_id


def stage_tasks(options: SinkOptions, query_id: str, tasks: int = TASKS) -> list[Staged]:
    """The rows of batch 1, shared by some tasks."""
    return [stage(options, query_id, 1, ROWS[task::tasks]) for task in range(tasks)]


def check_exactly_once(broker: Broker, options: SinkOptions) -> None:
    assert read_values(broker.bootstrap_servers, options.topic or "") == sorted(BEFORE + ROWS)


@pytest.fixture
def portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Append one staged batch at a time: each task has one."""
    monkeypatch.setattr("mainstem.spark.sink.transaction._APPEND_BYTES", 1)


@pytest.mark.parametrize("lives", range(1, 8))
def test_the_driver_is_killed(
    broker: Broker, options: SinkOptions, query_id: str, lives: int, tmp_path: Path
) -> None:
    batch = BatchCommit(options, query_id, 1, stage_tasks(options, query_id))
    order = tmp_path / "batch"
    order.write_bytes(pickle.dumps(batch))
    driver = subprocess.run(
        [sys.executable, str(DRIVER), str(order), str(lives)], capture_output=True, text=True, check=False
    )
    expected = list(dict.fromkeys(STEPS))  # all rows in one append
    if lives <= len(expected):
        assert (driver.returncode, driver.stdout.split()) == (-signal.SIGKILL, [expected[lives - 1].name])
    else:
        assert (driver.returncode, driver.stdout.split()) == (0, ["DONE"]), driver.stderr
    # Spark runs the batch again, with tasks of another shape.
    commit(options, query_id, 1, stage_tasks(options, query_id, TASKS + 1), remembered=True)
    check_exactly_once(broker, options)
    assert not list(tmp_path.glob("staging/*/*"))


@pytest.mark.usefixtures("portions")
@pytest.mark.parametrize("moment", range(len(STEPS)))
def test_the_broker_is_killed_and_the_driver_goes_on(
    broker: Broker, options: SinkOptions, query_id: str, moment: int
) -> None:
    batch = BatchCommit(options, query_id, 1, stage_tasks(options, query_id))
    done: list[Step] = []
    with Cluster(options.client) as cluster:
        for step in commit_steps(cluster, batch):
            if len(done) == moment:
                broker.kill()
                broker.start()
            done.append(step)
    assert done == STEPS
    check_exactly_once(broker, options)
    commit(options, query_id, 1, stage_tasks(options, query_id), remembered=True)
    check_exactly_once(broker, options)


@pytest.mark.usefixtures("portions")
@pytest.mark.parametrize("moment", range(len(STEPS)))
def test_both_are_killed(broker: Broker, options: SinkOptions, query_id: str, moment: int) -> None:
    batch = BatchCommit(options, query_id, 1, stage_tasks(options, query_id))
    with Cluster(options.client) as cluster:
        steps = commit_steps(cluster, batch)
        for _ in range(moment + 1):
            next(steps)
        broker.kill()
        broker.start()
    commit(options, query_id, 1, stage_tasks(options, query_id), remembered=True)
    check_exactly_once(broker, options)
