"""One run of transactional clients against a broker that is killed, in a process of its own.

librdkafka ends its process when one of its own assertions fails. That happens now and then when a broker dies
under its transactions, and must not take the test run along: such a run says nothing and is made again.
"""

import subprocess
import sys
from pathlib import Path

from tests.faults.history import Operation, read_history
from tests.faults.history_checks import check
from tests.faults.transaction_brokers import broker_of
from tests.faults.transaction_run import SETTINGS, run

_LOG_CHARACTERS_SHOWN = 4000
_RUNS_MAX = 3
_ROOT = Path(__file__).parents[2]


def live_through(name: str, folder: Path, kills: int, seed: int) -> tuple[list[Operation], list[str]]:
    """The history of a run, and its anomalies in words."""
    for number in range(_RUNS_MAX):
        path = folder / f"history-{number}"
        command = [sys.executable, "-m", __name__, name, str(path), str(kills), str(seed)]
        life = subprocess.run(command, check=False, cwd=_ROOT, stderr=subprocess.PIPE, text=True)
        if life.returncode < 0:
            continue
        assert life.returncode == 0, life.stderr[-2 * _LOG_CHARACTERS_SHOWN :]
        history = read_history(path)
        return history, [f"{anomaly.kind}: {anomaly.text}" for anomaly in check(history)]
    raise AssertionError(f"the clients' process has died {_RUNS_MAX} times")


def _live(name: str, path: Path, kills: int, seed: int) -> None:
    with broker_of(name, SETTINGS, seed) as broker:
        try:
            run(broker, path, kills, seed)
            assert "Traceback" not in broker.log
        except AssertionError:
            # Before what went wrong, which must be among the last words.
            print(broker.log[-_LOG_CHARACTERS_SHOWN:], file=sys.stderr)
            raise


if __name__ == "__main__":
    _live(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
