"""The light parser of `mainstem up`: what it accepts, and the one line it answers mistakes with."""

import pytest

from mainstem.cli.errors import CommandError
from mainstem.cli.up.options import OPTION_SPECS, UpOptions, parse


def test_without_arguments_nothing_is_asked_for() -> None:
    assert parse([]) == UpOptions(set=[])


def test_every_option_is_read() -> None:
    line = "--data d --host ::1 --port=0 --config f.properties --set a.b=1 --set=c.d=x=y"
    line += " --metrics-port 9644 --log-format json --nodes 3 --no-restart"
    options = parse([*line.split(), "--no-uvloop", "--log-level", "debug"])
    assert options == UpOptions(
        data="d",
        host="::1",
        port=0,
        metrics_port=9644,
        nodes="3",
        restart=False,
        config="f.properties",
        set=["a.b=1", "c.d=x=y"],
        uvloop=False,
        log_level="debug",
        log_format="json",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prot", "1"], "unknown option --prot (did you mean --port?)"),
        (["--port"], "--port needs a value (PORT)"),
        (["--port", "http"], "--port http is not a number"),
        (["--port", "65536"], "--port 65536 is out of range: use 0 to 65535 (0 picks a free one)"),
        (["--port", "-1"], "--port -1 is out of range: use 0 to 65535 (0 picks a free one)"),
        (["--ephemeral=yes"], "--ephemeral takes no value"),
        (["--set", "num.partitions"], "--set num.partitions has no value: write --set num.partitions=VALUE"),
        (["--log-level", "loud"], "--log-level loud is not one of debug, info, warning, error"),
        (["--log-format", "xml"], "--log-format xml is not one of text, json"),
        (["--metrics-port", "x"], "--metrics-port x is not a number"),
        (
            ["--metrics-port", "-2"],
            "--metrics-port -2 is out of range: use 0 to 65535 (0 picks a free one)",
        ),
        (["--nodes", "0"], "--nodes 0 is neither a number from 1 to 100 nor auto"),
        (["--nodes", "all"], "--nodes all is neither a number from 1 to 100 nor auto"),
        (["--no-restart"], "--no-restart goes with --nodes: a single broker is never started again"),
        (["start"], "unexpected argument 'start'"),
        (
            ["--data", "d", "--ephemeral"],
            "--ephemeral removes its data at exit: give either --data or --ephemeral, not both",
        ),
    ],
)
def test_a_mistake_is_named_in_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse(arguments)
    assert caught.value.message == message
    assert caught.value.exit_code == 2


def test_every_option_fills_a_field_of_its_own() -> None:
    fields = [spec.field for spec in OPTION_SPECS]
    assert sorted(fields) == sorted(UpOptions.__struct_fields__)
