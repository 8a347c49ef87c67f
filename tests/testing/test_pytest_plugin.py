"""The pytest plugin, as a project that uses it sees it."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

PORTS = set()


@pytest.fixture(scope="session")
def mainstem_config():
    return {"num.partitions": 2}


@pytest.mark.parametrize("number", [1, 2])
def test_the_session_broker_is_one(mainstem_broker, number):
    PORTS.add(mainstem_broker.port)
    assert len(PORTS) == 1


@pytest.mark.parametrize("number", [1, 2])
def test_a_fresh_broker_is_another_and_empty(mainstem_broker, fresh_mainstem_broker, number):
    assert fresh_mainstem_broker.port != mainstem_broker.port
    assert [p.name for p in fresh_mainstem_broker.data_dir.glob("*-0")] == ["__cluster_metadata-0"]
"""


def test_the_fixtures_give_brokers(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(TESTS)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "mainstem.testing.pytest_plugin",
            "-p",
            "no:cacheprovider",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_the_plugin_costs_nothing_where_it_is_not_used() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import mainstem.testing.pytest_plugin\n"
        "ours = ('mainstem.testing', 'mainstem.local_cluster')\n"
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith(ours)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert printed == "['mainstem']\n"
