"""What the commands look like on a terminal: tables and a progress bar, and no trace of them in a pipe."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from mainstem.testing import Broker
from tests.cli.conftest import Mainstem
from tests.cli.group_members import commit
from tests.cli.open_transactions import producer
from tests.support.target import unique_name

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def on_terminal(broker: Broker, *arguments: str, typed: str | None = None, code: int = 0) -> str:
    """What a terminal shows of the command, without colours and cursor movements. With something typed, the
    command is asked at the terminal too.
    """
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mainstem", *arguments],
        stdin=subprocess.DEVNULL if typed is None else terminal,
        stdout=terminal,
        stderr=terminal,
        env=os.environ | {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    os.write(controller, (typed or "").encode())
    shown = b""
    try:
        while chunk := os.read(controller, 4096):
            shown += chunk
    except OSError:  # the other end is closed: the command has ended
        pass
    os.close(controller)
    assert process.wait(60) == code
    return _ESCAPE.sub("", shown.decode())


def test_topics_are_a_table_on_a_terminal_and_names_in_a_pipe(broker: Broker, mainstem: Mainstem) -> None:
    name = unique_name("table")
    mainstem("topics", "create", name, "--partitions", "2")
    shown = on_terminal(broker, "topics", "list")
    assert re.search(r"topic\s+partitions\s+replicas", shown)
    assert re.search(rf"{name}\s+2\s+1", shown)
    assert "─" in shown
    assert name in mainstem("topics", "list").stdout.splitlines()


def test_groups_and_plans_are_tables_on_a_terminal(broker: Broker, mainstem: Mainstem) -> None:
    topic, group = unique_name("topic"), unique_name("group")
    mainstem("topics", "create", topic, "--partitions", "1")
    commit(broker.bootstrap_servers, group, topic, 0)
    listed = on_terminal(broker, "groups", "list")
    assert re.search(r"group\s+type\s+state", listed)
    assert re.search(rf"{group}\s+classic\s+Empty", listed)
    planned = on_terminal(broker, "groups", "reset-offsets", group, "--all-topics", "--to-latest")
    plan, _, remark = planned.partition("nothing is changed yet")
    assert re.search(rf"{topic}\s+0\s+0\s+0\s+0\s", plan)
    assert "--execute" in remark


def test_transactions_are_a_table_and_are_not_ended_unasked(broker: Broker) -> None:
    name = unique_name("txn")
    producer(broker.bootstrap_servers, name)
    listed = on_terminal(broker, "transactions", "list")
    assert re.search(r"transactional id\s+state\s+producer\s+coordinator", listed)
    assert re.search(rf"{name}\s+Empty\s+\d+\s+1", listed)
    refused = on_terminal(broker, "transactions", "fence", name, typed="n\n", code=1)
    assert f"Fence {name}?" in refused
    assert "not done, as you said" in refused
    assert f"fenced {name}: " in on_terminal(broker, "transactions", "fence", name, typed="y\n")


def test_the_title_of_a_description_stays_on_one_line(broker: Broker, mainstem: Mainstem) -> None:
    name = unique_name("title")
    mainstem("topics", "create", name, "--partitions", "1")
    shown = on_terminal(broker, "topics", "describe", name)
    assert re.search(rf"{name}  id \S+  partitions 1  replication 1\r?\n", shown)


def test_a_bar_shows_the_progress_on_a_terminal(broker: Broker, mainstem: Mainstem, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("line\n" * 20_000)
    name = unique_name("bar")
    shown = on_terminal(broker, "produce", name, "--file", str(lines))
    assert re.search(r"[\d,]+ messages .*━", shown)
    assert "sent 20,000 messages" in shown
    assert "━" not in mainstem("produce", name, "--file", str(lines)).stderr
