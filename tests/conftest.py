"""What every test may use. The processes of a session are ended here, also when the session fails."""

import pytest

from tests.support import shared


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shared.open_session()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shared.close_session()
