"""The clients with transactions, plain records and polls, on three nodes that are killed, stopped and paused.

None of them sees an anomaly, and no transaction is left hanging.
"""

import time
from pathlib import Path

import pytest

from tests.faults.history_checks import summary
from tests.faults.test_transaction_chaos import check_that_it_meant_something
from tests.faults.transaction_life import live_through


@pytest.mark.timeout(600)
def test_transactions_survive_the_faults_of_a_cluster(tmp_path: Path) -> None:
    history, anomalies = live_through("cluster", tmp_path, kills=4, seed=7)
    assert not anomalies, "\n".join([summary(history), *anomalies[:20]])
    check_that_it_meant_something(history)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_transactions_survive_a_hundred_faults_of_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    history, anomalies = live_through("cluster", tmp_path, kills=100, seed=100)
    assert not anomalies, "\n".join([summary(history), *anomalies[:20]])
    with capsys.disabled():
        print(f"\n100 faults in {time.monotonic() - started:.0f} s: {summary(history)}")
