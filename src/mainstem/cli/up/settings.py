"""Turns `mainstem up` options and a server.properties file into the broker's configuration.

`--host`, `--port`, `--data` and `--metrics-port` are shorthands for settings and are translated here, before
the configuration layer sees them; no setting is interpreted anywhere else in the command.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mainstem.cli.errors import CommandError, in_two_lines
from mainstem.cli.up.options import UpOptions
from mainstem.config import BrokerConfig, ConfigError, load_properties, resolve

DEFAULT_HOST = "localhost"
DEFAULT_PORT = 9092
CHECK_DIRECTORY = "check that directory, or choose another one with --data"
METRICS_PORT = "mainstem.metrics.port"
DATA_SETTINGS = ("log.dirs", "log.dir")

Settings = dict[str, str]


def default_data_dir() -> Path:
    """The per-user place for data, by the platform's own convention."""
    home = os.environ.get("XDG_DATA_HOME")
    if home:
        return Path(home) / "mainstem"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "mainstem"
    return Path.home() / ".local" / "share" / "mainstem"


def configure(options: UpOptions, data_dir: Path | None) -> tuple[BrokerConfig, list[str]]:
    """Resolve the configuration of one start; `data_dir` wins over every file. Returns warnings beside it."""
    try:
        from_file = load_properties(Path(options.config)) if options.config else {}
        from_set = set_settings(options)
        defaults: Settings = {}
        _apply_listener(options, from_file, from_set, defaults)
        _apply_data_dir(data_dir, from_file, from_set, defaults)
        if options.metrics_port is not None:
            from_set[METRICS_PORT] = str(options.metrics_port)
        return resolve(from_file, from_set, defaults)
    except ConfigError as error:
        raise in_two_lines(str(error), where_to_look(error)) from None


def where_to_look(error: ConfigError) -> str:
    """What to do about a setting that was refused."""
    if error.setting is None:
        return "check the file that --config names"
    return "docs/configuration.md lists every setting with its default and its range"


def set_settings(options: UpOptions) -> Settings:
    """What --set says."""
    settings: Settings = {}
    for item in options.set:
        name, _, value = item.partition("=")
        settings[name.strip()] = value.strip()
    return settings


def _apply_data_dir(
    data_dir: Path | None, from_file: Settings, from_set: Settings, defaults: Settings
) -> None:
    if data_dir is None:
        if not any(name in settings for settings in (from_file, from_set) for name in DATA_SETTINGS):
            defaults["log.dirs"] = str(default_data_dir())
        return
    for name in DATA_SETTINGS:
        from_file.pop(name, None)
        if name in from_set:
            raise CommandError("the data directory is given twice", f"leave out --set {name}", exit_code=2)
    from_set["log.dirs"] = str(data_dir)


def _apply_listener(options: UpOptions, from_file: Settings, from_set: Settings, defaults: Settings) -> None:
    """`--host` and `--port` change the first listener; its name and every further listener stay."""
    defaults["listeners"] = f"PLAINTEXT://{DEFAULT_HOST}:{DEFAULT_PORT}"
    if options.host is None and options.port is None:
        return
    if "listeners" in from_set:
        raise CommandError("--set listeners holds host and port", "leave out --host and --port", exit_code=2)
    entries = [entry.strip() for entry in from_file.get("listeners", "").split(",") if entry.strip()]
    first, *others = entries or [defaults["listeners"]]
    name, _, address = first.partition("://")
    host, _, port = address.rpartition(":")
    if options.host is not None:
        host = f"[{options.host}]" if ":" in options.host else options.host
    if options.port is not None:
        port = str(options.port)
    from_set["listeners"] = ",".join([f"{name}://{host}:{port}", *others])
    if "advertised.listeners" in from_file:
        _drop_advertised(name, from_file)


def _drop_advertised(name: str, from_file: Settings) -> None:
    """What the file advertised for a listener is stale once its host or port was given by hand."""
    entries = [entry.strip() for entry in from_file.pop("advertised.listeners").split(",")]
    kept = [entry for entry in entries if entry and entry.partition("://")[0] != name]
    if kept:
        from_file["advertised.listeners"] = ",".join(kept)
