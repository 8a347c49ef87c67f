"""Formatted directories: `mainstem storage` leaves what Apache Kafka's tool does; each reads the other's."""

from pathlib import Path

import pytest

from tests.cli.command import run_command
from tests.support.kafka_peer import kafka_tool

pytestmark = pytest.mark.peer

CLUSTER = "Zm9ybWF0dGVkLWNsdXN0ZQ"
VOTERS = ",".join(f"{number}@127.0.0.1:{9090 + number}:{number}AAAAAAAAAAAAAAAAAAAAA" for number in (1, 2, 3))
# What Mainstem does not have yet.
OF_KAFKA = ("share.version=0", "streams.version=0")


def node(folder: Path) -> Path:
    folder.mkdir()
    path = folder / "server.properties"
    lines = {
        "process.roles": "broker,controller",
        "node.id": "2",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093",
        "controller.quorum.bootstrap.servers": "127.0.0.1:19093",
        "log.dirs": f"{folder / 'a'},{folder / 'b'}",
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return path


def content(folder: Path) -> dict[str, str]:
    """What is in every file below it, in the words of Apache Kafka's tool, without times and ids."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".checkpoint":
            dumped = kafka_tool(
                "DumpLogSegments",
                "--files",
                str(path),
                "--cluster-metadata-decoder",
                "--skip-record-metadata",
            ).check()
            found[name] = "\n".join(
                line for line in dumped.splitlines() if "payload" in line or "Voter" in line
            )
        elif path.name == "meta.properties":
            lines = path.read_text().splitlines()
            found[name] = "\n".join(
                sorted(line for line in lines if not line.startswith(("#", "directory.id")))
            )
        elif path.is_file() and path.name not in (".lock", "server.properties"):
            found[name] = path.read_text()
    return found


@pytest.mark.parametrize(
    "options",
    [
        ("--initial-controllers", VOTERS),
        ("--no-initial-controllers",),
        ("--initial-controllers", VOTERS, "-r", "3.9"),
    ],
    ids=["initial-controllers", "no-initial-controllers", "release"],
)
def test_both_leave_the_same(tmp_path: Path, options: tuple[str, ...]) -> None:
    ours, theirs = node(tmp_path / "ours"), node(tmp_path / "theirs")
    without = [part for feature in OF_KAFKA for part in ("--feature", feature)]
    arguments = ("format", "-t", CLUSTER)
    said = kafka_tool("kafka.tools.StorageTool", *arguments, "-c", str(theirs), *options, *without).check()
    done = run_command("storage", *arguments, "-c", str(ours), *options)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.replace("ours", "theirs").splitlines()) == sorted(
        line for line in said.splitlines() if line.startswith("Formatting ")
    )
    assert content(tmp_path / "ours") == content(tmp_path / "theirs")


def test_each_says_what_the_other_has_formatted(tmp_path: Path) -> None:
    ours, theirs = node(tmp_path / "ours"), node(tmp_path / "theirs")
    kafka_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(theirs), "--standalone").check()
    assert run_command("storage", "format", "-t", CLUSTER, "-c", str(ours), "--standalone").returncode == 0
    for path in (ours, theirs):
        said = kafka_tool("kafka.tools.StorageTool", "info", "-c", str(path))
        mine = run_command("storage", "info", "-c", str(path))
        assert said.returncode == mine.returncode == 0
        assert mine.stdout in said.stdout
