"""What every test may use, and how tests go to workers. The processes of a session are ended here, also when
the session fails.
"""

import asyncio
import inspect
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop
from hypothesis import HealthCheck, settings

from mainstem.testing import Broker
from tests.support import shared, spark_java
from tests.support.kafka_peer import shared_kafka
from tests.support.target import Target

_WORKERS_BEYOND_CORES = 1
_LONG_SECONDS = 300
_COROUTINE_SECONDS_MAX = 60
_OF_PYTEST = b"PYTEST_CURRENT_TEST"  # pytest's own, which changes while a test runs
# What os.environ keeps; to copy it the official way takes a hundred times as long.
_VARIABLES: dict[bytes, bytes] = vars(os.environ)["_data"]


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Neighbours stay together, for they share what their module starts; idle workers take from others."""
    if config.getoption("numprocesses", None) and config.getoption("dist") == "no":
        config.option.dist = "worksteal"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Tests of real processes wait for half of their time, so cores would idle; with more of them at once,
    Spark gives up on Python processes that start too slowly.
    """
    return (os.cpu_count() or 1) + _WORKERS_BEYOND_CORES


def pytest_configure(config: pytest.Config) -> None:
    # How fast examples are made and tried says nothing where others keep the machine busy.
    settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy machine")
    _hear_signals()
    if not hasattr(config, "workerinput"):
        shared.open_session()
        spark_java.prepare_environment()


def _hear_signals() -> None:
    """Who runs tests in the background may ignore signals, and what tests start would, too."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shared.close_session()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long ones come first, so that no worker is left alone with one at the end. Each worker begins with
    an equal part of the list, so one gets all that use a Spark session, which is then started once, and the
    next what starts long-lived processes of its own.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    lanes: list[list[pytest.Item]] = [[], []]
    rest = []
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            lanes[0].append(item)
        elif _timeout_s(item) >= _LONG_SECONDS:
            lanes[1].append(item)
        else:
            rest.append(item)
    lanes[1].sort(key=_timeout_s, reverse=True)
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        share = len(items) * (worker + 1) // workers - len(ordered)
        first = lanes.pop(0) if lanes else []
        ordered += first + rest[: max(0, share - len(first))]
        del rest[: max(0, share - len(first))]
    items[:] = ordered + rest + [item for lane in lanes for item in lane]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in the loop of its file, which it uses by the fixture `runner`."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    runner = pyfuncitem.funcargs["runner"]
    assert isinstance(runner, asyncio.Runner)
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    seconds_max = max(_COROUTINE_SECONDS_MAX, _timeout_s(pyfuncitem))
    runner.run(asyncio.wait_for(pyfuncitem.obj(**arguments), seconds_max))
    return True


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of all tests of a file."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield runner


@pytest.fixture(scope="session")
def mainstem(mainstem_broker: Broker) -> Target:
    """One Mainstem broker per worker."""
    return Target("mainstem", mainstem_broker.bootstrap_servers, mainstem_broker.data_dir)


@pytest.fixture(scope="session")
def kafka() -> Target:
    """The Apache Kafka broker that all workers share."""
    peer = shared_kafka()
    return Target("kafka", peer.bootstrap_servers, Path(peer.log_dir))


@pytest.fixture(params=["mainstem", pytest.param("kafka", marks=pytest.mark.peer)])
def target(request: pytest.FixtureRequest) -> Target:
    """Mainstem, then Apache Kafka."""
    return request.getfixturevalue(request.param)


def _timeout_s(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker is not None and marker.args else 0.0


@pytest.fixture(autouse=True)
def _leave_the_process_as_it_was() -> Iterator[None]:
    """What a test forgets to undo would decide how later ones on the same worker go."""
    path, folder, before = sys.path[:], os.getcwd(), _VARIABLES.copy()
    yield
    if sys.path != path:
        sys.path[:] = path
    if os.getcwd() != folder:
        os.chdir(folder)
    for name in [name for name in _VARIABLES if name not in before]:
        del os.environb[name]
    for name, value in before.items():
        if _VARIABLES.get(name) != value and name != _OF_PYTEST:
            os.environb[name] = value
