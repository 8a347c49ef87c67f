"""How the options of `mainstem up` become Kafka's settings."""

from pathlib import Path

import pytest

from mainstem.cli.errors import CommandError
from mainstem.cli.up.options import UpOptions
from mainstem.cli.up.settings import configure, default_data_dir
from mainstem.config import BrokerConfig


def listeners(options: UpOptions) -> list[str]:
    config, _ = configure(options, Path("data"))
    return list(config.get("listeners"))


def options_with_file(tmp_path: Path, text: str, **values: object) -> UpOptions:
    path = tmp_path / "server.properties"
    path.write_text(text)
    return UpOptions(config=str(path), set=[], **values)  # type: ignore[arg-type]


def test_by_default_it_listens_on_localhost_9092(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config, warnings = configure(UpOptions(set=[]), None)
    assert config.get("listeners") == ("PLAINTEXT://localhost:9092",)
    assert config.log_dirs() == (str(tmp_path / "mainstem"),)
    assert config.override("listeners") is None
    assert warnings == []


def test_without_xdg_the_data_is_under_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert default_data_dir() == Path.home() / ".local/share/mainstem"
    monkeypatch.setattr("sys.platform", "darwin")
    assert default_data_dir() == Path.home() / "Library/Application Support/mainstem"


def test_host_and_port_make_the_listener() -> None:
    assert listeners(UpOptions(host="0.0.0.0", set=[])) == ["PLAINTEXT://0.0.0.0:9092"]
    assert listeners(UpOptions(port=0, set=[])) == ["PLAINTEXT://localhost:0"]
    assert listeners(UpOptions(host="::1", port=1, set=[])) == ["PLAINTEXT://[::1]:1"]


def test_a_file_keeps_its_listeners(tmp_path: Path) -> None:
    text = "listeners=PLAINTEXT://:19092\nlog.dirs=/somewhere\n"
    config, _ = configure(options_with_file(tmp_path, text), None)
    assert config.get("listeners") == ("PLAINTEXT://:19092",)
    assert config.log_dirs() == ("/somewhere",)


def test_log_dir_in_a_file_is_not_hidden_by_the_default(tmp_path: Path) -> None:
    config, _ = configure(options_with_file(tmp_path, "log.dir=/somewhere\n"), None)
    assert config.log_dirs() == ("/somewhere",)


def test_port_changes_the_first_listener_of_a_file_and_what_it_advertised(tmp_path: Path) -> None:
    text = (
        "listeners=A://localhost:1,B://localhost:2\n"
        "advertised.listeners=A://a.example:1,B://b.example:2\n"
        "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\n"
        "inter.broker.listener.name=A\n"
    )
    config, _ = configure(options_with_file(tmp_path, text, port=7), Path("data"))
    assert config.get("listeners") == ("A://localhost:7", "B://localhost:2")
    assert config.get("advertised.listeners") == ("B://b.example:2",)


def test_data_wins_over_the_file(tmp_path: Path) -> None:
    config, _ = configure(options_with_file(tmp_path, "log.dirs=/a,/b\nlog.dir=/c\n"), Path("here"))
    assert config.log_dirs() == ("here",)


def test_set_wins_over_the_file(tmp_path: Path) -> None:
    options = options_with_file(tmp_path, "num.partitions=2\nlog.retention.hours=1\n")
    options.set = ["num.partitions=5"]
    config, _ = configure(options, Path("data"))
    assert (config.get("num.partitions"), config.get("log.retention.hours")) == (5, 1)


def _refusal(options: UpOptions, data_dir: Path | None = Path("data")) -> str:
    with pytest.raises(CommandError) as caught:
        configure(options, data_dir)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return f"{caught.value.message}\n{caught.value.hint}"


def test_mistakes_are_refused_with_a_next_step(tmp_path: Path) -> None:
    assert "num.partitions" in _refusal(UpOptions(set=["num.partitons=1"]))
    assert "num.partitions" in _refusal(UpOptions(set=["num.partitions=0"]))
    assert "leave out --host and --port" in _refusal(UpOptions(port=1, set=["listeners=PLAINTEXT://:1"]))
    assert "given twice" in _refusal(UpOptions(set=["log.dirs=x"]))
    missing = str(tmp_path / "missing")
    assert missing in _refusal(UpOptions(config=missing, set=[]))
    assert "ssl." in _refusal(options_with_file(tmp_path, "ssl.keystore.location=x\n"))


def test_a_setting_that_nobody_knows_is_a_warning_from_a_file(tmp_path: Path) -> None:
    _, warnings = configure(options_with_file(tmp_path, "no.such.setting=1\n"), Path("data"))
    assert len(warnings) == 1
    assert "no.such.setting" in warnings[0]


def test_the_configuration_is_a_broker_configuration() -> None:
    config, _ = configure(UpOptions(set=[]), Path("data"))
    assert isinstance(config, BrokerConfig)
