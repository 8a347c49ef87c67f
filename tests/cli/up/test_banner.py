"""What `mainstem up` prints when it is ready."""

from pathlib import Path

import pytest

from mainstem.cli.command_name import command_name, typeable
from mainstem.cli.up.banner import banner, ready_line
from mainstem.local_cluster.node_process import parse_ready


def test_the_ready_line_has_its_stable_form() -> None:
    line = ready_line("localhost:9092", 1, "cluster-id", "/data dir/x")
    assert line == "mainstem ready bootstrap=localhost:9092 node=1 cluster=cluster-id data=/data dir/x"


def test_with_a_metrics_port_the_ready_line_names_it() -> None:
    line = ready_line("localhost:9092", 1, "id", "/a b", "http://localhost:9644/metrics")
    assert parse_ready(line)["metrics"] == "http://localhost:9644/metrics"
    assert parse_ready(line)["data"] == "/a b"
    assert "http://localhost:9644/metrics" in banner(
        "localhost:9092", "/x", ephemeral=False, metrics_url="http://localhost:9644/metrics"
    )


def test_mainstem_testing_reads_the_ready_line() -> None:
    assert parse_ready(ready_line("[::1]:9092", 1, "id", "/a b/c=d") + "\n") == {
        "bootstrap": "[::1]:9092",
        "node": "1",
        "cluster": "id",
        "data": "/a b/c=d",
    }


def test_in_a_checkout_the_banner_names_the_script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert command_name() == "mainstem"
    (tmp_path / "mainstem").touch(0o755)
    assert command_name() == "./mainstem"
    assert typeable("start one with `mainstem up`") == "start one with `./mainstem up`"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mainstem").touch(0o755)
    assert command_name() == "mainstem"


def test_the_banner_offers_commands_that_reach_this_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("mainstem.cli.up.banner.command_name", lambda: "mainstem")
    text = banner("localhost:9092", str(Path.home() / "x"), ephemeral=False)
    assert "data       ~/x\n" in text
    assert "produce greetings\n" in text
    other = banner("127.0.0.1:5555", "/tmp/x", ephemeral=True)
    assert "produce greetings -b 127.0.0.1:5555\n" in other
    assert "/tmp/x (removed at exit)" in other
    assert "\033" not in other
