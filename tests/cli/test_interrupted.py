"""Ctrl-C ends every command quietly, also one that has only begun to be imported."""

import subprocess
import sys

import pytest

# Runs `python -m mainstem` with what a Ctrl-C raises as soon as the module MODULE is imported.
INTERRUPTED_AT = """
import runpy, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            raise KeyboardInterrupt

MODULE = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupt())
runpy.run_module("mainstem", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("mainstem.cli.streams", "--version"),
        ("typer", "--help"),
        ("mainstem.cli.topics.command", "topics list"),
        ("mainstem.wire", "cluster status"),
        ("mainstem.cli.up.command", "up --ephemeral --port 0"),
        ("mainstem.broker.server", "up --ephemeral --port 0"),
        ("mainstem.cli.up.cluster", "up --nodes 3 --ephemeral --port 0"),
        ("mainstem.cli.up.supervisor", "up --nodes 3 --ephemeral --port 0"),
    ],
)
def test_an_interrupt_while_it_is_imported_is_quiet(module: str, command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, module, *command.split()],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
