"""`--help` teaches: every command shows what it does, and examples that are real command lines."""

import re

import pytest

from mainstem import __version__
from tests.cli.command import run_command

COMMANDS = [
    ("demo",),
    ("up",),
    ("produce",),
    ("consume",),
    ("dump-log",),
    *(("cluster", name) for name in ("status", "id", "elect-leaders", "reassign", "unregister")),
    *(("cluster", name) for name in ("features", "upgrade", "downgrade")),
    *(("topics", name) for name in ("list", "create", "describe", "delete", "alter")),
    *(("groups", name) for name in ("list", "describe", "members", "lag")),
    *(("groups", name) for name in ("reset-offsets", "delete-offsets", "delete")),
    *(("transactions", name) for name in ("list", "describe", "describe-producers")),
    *(("transactions", name) for name in ("find-hanging", "abort", "fence")),
    *(("storage", name) for name in ("format", "info", "random-uuid")),
]


def test_the_version() -> None:
    for flag in ("--version", "-V"):
        assert run_command(flag).stdout == f"mainstem {__version__}\n"


def test_no_arguments_show_the_commands() -> None:
    shown = run_command()
    text = shown.stdout + shown.stderr
    for name in ("up", "topics", "produce", "consume", "groups", "transactions", "dump-log"):
        assert re.search(rf"^\W*{name} ", text, re.M), name


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_explains_itself_with_examples(command: tuple[str, ...]) -> None:
    for flag in ("--help", "-h"):
        shown = run_command(*command, flag)
        assert shown.returncode == 0, shown.stderr
        assert f"Usage: mainstem {' '.join(command)}" in shown.stdout
        assert "Examples" in shown.stdout
        assert f"mainstem {' '.join(command)}" in shown.stdout.partition("Examples")[2]


def test_an_unknown_command_is_a_usage_error() -> None:
    result = run_command("strat")
    assert result.returncode == 2
    assert "strat" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_wrong_command_line_reads_like_every_other_error() -> None:
    result = run_command("consume", "orders", "--offset", "first")
    assert result.returncode == 2
    message, hint = result.stderr.splitlines()
    assert message.startswith("mainstem: invalid value for '--offset'")
    assert hint.endswith("mainstem consume --help shows every option, with examples")
    assert run_command("topics", "crate").stderr.endswith("mainstem topics --help shows the commands\n")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_examples_are_indented(command: tuple[str, ...]) -> None:
    shown = run_command(*command, "--help").stdout.partition("Examples")[2]
    assert re.search(r"^   \S", shown, re.M)
