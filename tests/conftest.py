"""What every test may use, and how tests go to workers. The processes of a session are ended here, also when
the session fails.
"""

import os

import pytest

from tests.support import shared

_WORKERS_BEYOND_CORES = 1


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
    if not hasattr(config, "workerinput"):
        shared.open_session()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shared.close_session()
