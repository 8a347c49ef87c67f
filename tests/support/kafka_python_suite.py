"""Runs kafka-python's own integration tests, from its source package, against a running broker.

Inside that run this file is a pytest plugin: it stands in for two modules that the source package leaves out.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from tests.support.tool_server import PeerMissingError

_ROOT = Path(__file__).parents[2]
_SOURCE = "MAINSTEM_KAFKA_PYTHON_SOURCE"
# The files about TLS and SASL start brokers of their own.
_FILES = ("test_admin_integration.py", "test_consumer_integration.py", "test_producer_integration.py")


def source_folder() -> Path:
    """The unpacked source package of the version that the tests use."""
    from kafka import __version__

    folder = _ROOT / ".peers" / f"kafka-python-{__version__}"
    if not folder.is_dir():
        raise PeerMissingError(f"the source of kafka-python {__version__} is not in .peers/: run ./test")
    return folder


def failures(bootstrap_servers: str, kafka_version: str, work_folder: Path) -> tuple[set[str], str]:
    """The names of the tests that did not pass, and what pytest had to say."""
    source = source_folder()
    environment = os.environ | {
        _SOURCE: str(source),
        "KAFKA_URI": f"kafka://{bootstrap_servers}",
        "KAFKA_VERSION": kafka_version,
        "KAFKA_ROOT": str(work_folder),
        "PYTHONPATH": str(_ROOT),
    }
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.kafka_python_suite"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(source), "-c", os.devnull]
    command += ["-q", "-rA", "--tb=short", "--timeout=20", "--timeout-method=signal"]
    files = [str(source / "test" / "integration" / name) for name in _FILES]
    result = subprocess.run(
        [*command, *files], cwd=work_folder, env=environment, capture_output=True, text=True, check=False
    )
    found = re.findall(r"^(PASSED|FAILED|ERROR) \S+?::(\S+)", result.stdout, re.M)
    assert len(found) > 50, f"the suite did not run\n{result.stdout}\n{result.stderr}"
    return {name for outcome, name in found if outcome != "PASSED"}, result.stdout


class ExternalService:
    """A broker that somebody else started: there is nothing to start or stop."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port


if _SOURCE in os.environ:
    # The name `test` is also that of a package of Python's own, which must not be found first.
    package = ModuleType("test")
    package.__path__ = [str(Path(os.environ[_SOURCE]) / "test")]
    service = ModuleType("test.service")
    vars(service).update(ExternalService=ExternalService, SpawnedService=None)
    sys.modules |= {"test": package, "test.service": service}
