"""The repository keeps the rules of the house, and the checkers of these rules catch what they are for."""

import tomllib
from collections.abc import Callable, Iterator

import pytest

from tests.support import tidy
from tests.support.repository import ROOT, files

# What gives the rest of the broker its time, its randomness and its child processes.
PROVIDERS = ("clock", "randomness", "processes")
Checker = Callable[[str, str], Iterator[str]]
_WHY = '"""A file. Long on purpose: it is one idea."""\n'


def _complaints(checker: Checker, texts: dict[str, str]) -> list[str]:
    return [complaint for path, text in texts.items() for complaint in checker(path, text)]


@pytest.mark.parametrize("checker", [tidy.long_files, tidy.long_functions, tidy.missing_docstrings])
def test_python_files_are_short_and_say_what_they_are_for(checker: Checker) -> None:
    texts = files("src/*.py", "tests/*.py", "bench/*.py")
    assert len(texts) > 5
    assert _complaints(checker, texts) == []


@pytest.mark.parametrize("checker", [tidy.unfinished_work, tidy.machine_paths, tidy.registry_hosts])
def test_files_speak_of_the_product_only(checker: Checker) -> None:
    assert _complaints(checker, files()) == []


def test_the_broker_is_handed_time_randomness_threads_and_processes() -> None:
    folders = [f"src/mainstem/{name}/*.py" for name in ("broker", "cluster", "coordinator", "replication")]
    texts = files(*folders)
    for name in PROVIDERS:
        assert texts.pop(f"src/mainstem/broker/{name}.py"), "a provider that is not needed is not listed"
    assert len(texts) > 100
    assert _complaints(tidy.reaches_around, texts) == []


def test_every_module_is_used() -> None:
    sources = {_module_name(path): text for path, text in files("src/*.py").items()}
    entry_points = [
        "mainstem.__main__",
        "mainstem.cli.main",
        "mainstem.cluster.raft.raft",
        "mainstem.config.docs",
        "mainstem.records.columnar.ship",
        "mainstem.testing",
        "mainstem.testing.pytest_plugin",
        "pyspark_mainstem",
        "mainstem.security.principal_data",  # until envelopes are sent
    ]
    by_name = (
        r"mainstem\.(protocol|broker)\.apis\.k\d\d_\w+|mainstem\.cli\.\w+\.command"
        r"|mainstem\.spark\.pipeline\.(sources|steps|sinks|formats)\.\w+"
    )
    assert tidy.dead_modules(sources, entry_points, by_name) == []


def _module_name(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_lock_files_pin_every_requirement_and_hold_no_address() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime, dev = ((ROOT / "requirements" / name).read_text() for name in ("runtime.txt", "dev.txt"))
    assert list(tidy.lock_file_lines("runtime.txt", runtime)) == []
    assert list(tidy.lock_file_lines("dev.txt", dev)) == []
    dependencies = project["project"]["dependencies"]
    assert list(tidy.unlocked_requirements(dependencies, runtime)) == []
    assert list(tidy.unlocked_requirements(dependencies + project["dependency-groups"]["dev"], dev)) == []


def test_the_development_lock_contains_the_runtime_lock() -> None:
    def pins(name: str) -> set[str]:
        lines = (ROOT / "requirements" / name).read_text().splitlines()
        return {line for line in lines if "==" in line and not line.startswith("#")}

    assert pins("runtime.txt") <= pins("dev.txt")


@pytest.mark.parametrize(
    ("checker", "bad", "good"),
    [
        (tidy.long_files, "x = 1\n" * 501, "x = 1\n" * 500),
        (tidy.long_files, _WHY + "x = 1\n" * 700, _WHY + "x = 1\n" * 699),
        (tidy.long_functions, "def f():\n" + "    x = 1\n" * 60, "def f():\n" + "    x = 1\n" * 59),
        (tidy.missing_docstrings, "x = 1\n", '"""What it is for."""\n'),
        (tidy.reaches_around, "from time import monotonic\n", "from mainstem.broker import clock\n"),
        (tidy.reaches_around, "import random\n", "from uuid import UUID\n"),
        (tidy.reaches_around, "import os\nos.urandom(16)\n", "import os\nos.fsync(3)\n"),
        (tidy.reaches_around, "asyncio.create_subprocess_exec('x')\n", "loop.run_in_executor(None, x)\n"),
        (tidy.unfinished_work, "x = 1  # TO" + "DO later\n", "x = 1  # what todo lists are for\n"),
        (tidy.machine_paths, 'path = "/ho' + 'me/someone/x"\n', 'path = "https://host/wo' + 'rk/x"\n'),
        (tidy.registry_hosts, "see files.pythonhosted" + ".org\n", "see kafka.apache.org\n"),
        (tidy.lock_file_lines, "msgspec==1.0\n", "msgspec==1.0 \\\n    --hash=sha256:" + "0" * 64 + "\n"),
        (tidy.lock_file_lines, "--index-url https://example.org\n", "# made by requirements/update\n"),
    ],
)
def test_each_checker_catches_a_planted_violation(checker: Checker, bad: str, good: str) -> None:
    assert list(checker("sample", bad)) != []
    assert list(checker("sample", good)) == []


def test_a_module_that_nothing_imports_is_found() -> None:
    sources = {
        "app": "",
        "app.main": "from app import used\nfrom .other import thing\nNAME = 'app.lazy'",
        "app.used": "",
        "app.other": "",
        "app.lazy": "",
        "app.apis.k00_x": "import app.deep.a",
        "app.deep": "",
        "app.deep.a": "",
        "app.dead": "import app.dead_too",
        "app.dead_too": "",
    }
    assert tidy.dead_modules(sources, ["app.main"], r"app\.apis\.\w+") == ["app.dead", "app.dead_too"]


def test_a_requirement_that_is_not_locked_is_found() -> None:
    lock = "kafka-python==1.0 \\\n    --hash=sha256:00\n"
    assert list(tidy.unlocked_requirements(["Kafka_Python>=1"], lock)) == []
    assert list(tidy.unlocked_requirements(["other; python_version > '3'"], lock)) != []
