"""Every command ends in one line when its output is closed, full or abandoned, and never touches a socket
that has the number of a closed stream."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mainstem.testing import Broker
from tests.cli.conftest import Mainstem
from tests.support.target import unique_name

COMMANDS = ["--version", "--help", "topics --help", "topics list", "topics describe TOPIC", "config describe"]
COMMANDS += ["config describe --topic TOPIC --all", "logs sizes", "consume TOPIC -B -e", "dump-log SEGMENT"]


@pytest.fixture(scope="session")
def topic(broker: Broker) -> str:
    from tests.cli.command import run_command

    name = unique_name("streams")
    environment = {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers}
    run_command("topics", "create", name, "--partitions", "1", environment=environment)
    run_command("produce", name, stdin="one\n", environment=environment)
    return name


def shell(broker: Broker, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("mainstem", f"{sys.executable} -m mainstem", 1)],
        env=os.environ | {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def spelt_out(command: str, broker: Broker, topic: str) -> str:
    segment = broker.data_dir / f"{topic}-0" / "00000000000000000000.log"
    return command.replace("TOPIC", topic).replace("SEGMENT", str(segment))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("to", "reason"), [(">/dev/full", "no space left on device"), (">&-", "it is closed")]
)
def test_an_output_that_takes_nothing_is_said_in_one_line(
    broker: Broker, topic: str, command: str, to: str, reason: str
) -> None:
    ended = shell(broker, f"mainstem {spelt_out(command, broker, topic)} {to}")
    assert (ended.returncode, ended.stderr) == (1, f"mainstem: cannot write to standard output: {reason}\n")


def test_a_command_without_output_needs_none(broker: Broker, topic: str, mainstem: Mainstem) -> None:
    assert shell(broker, f"echo x | mainstem produce {topic} >&- 2>&-").returncode == 0
    assert mainstem("consume", topic, "-B", "-e").stdout.splitlines()[-1] == "x"


@pytest.mark.parametrize("to", ["2>&-", "2>/dev/full"])
def test_remarks_that_nobody_can_read_fail_nothing(broker: Broker, topic: str, to: str) -> None:
    ended = shell(broker, f"mainstem config describe --topic {topic} {to}")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    failed = shell(broker, f"mainstem topics describe no-such-topic {to}")
    assert (failed.returncode, failed.stdout, failed.stderr) == (1, "", "")


def test_a_closed_standard_input_is_no_empty_one(broker: Broker, topic: str) -> None:
    ended = shell(broker, f"mainstem produce {topic} <&-")
    assert (ended.returncode, ended.stderr) == (1, "mainstem: cannot read standard input: it is closed\n")


def test_a_reader_that_leaves_ends_a_list_without_complaint(broker: Broker) -> None:
    ended = shell(broker, "mainstem config describe | head -1 >/dev/null; exit ${PIPESTATUS[0]}")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_broker_runs_without_an_output(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {sys.executable} -m mainstem up --port 0 --ephemeral >&-"], stderr=log
        )
        try:
            while "ready at localhost:" not in (tmp_path / "log").read_text():
                assert process.poll() is None, (tmp_path / "log").read_text()
        finally:
            process.terminate()
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    "command",
    [
        "topics create $'a\\xff'",
        "groups describe $'a\\xff'",
        "config set retention.ms=$'a\\xff' --topic t",
        "consume TOPIC -e --group g --group-instance-id $'a\\xff'",
    ],
)
def test_an_argument_that_is_not_utf_8_is_refused_in_one_line(
    broker: Broker, topic: str, command: str
) -> None:
    ended = shell(broker, f"mainstem {command.replace('TOPIC', topic)}")
    assert ended.returncode == 2
    assert ended.stderr.startswith("mainstem: 'a\\udcff' is not UTF-8\n")


def test_a_file_name_that_is_not_utf_8_is_printed_as_it_is(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff-0"
    os.mkdir(folder)
    Path(os.fsdecode(folder), "partition.metadata").write_text("version: 0\n")
    printed = subprocess.run(
        [sys.executable, "-m", "mainstem", "dump-log", os.fsdecode(folder)],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert printed.stdout.startswith(folder + b"/partition.metadata\n")
