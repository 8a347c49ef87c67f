"""Turns `mainstem up` options and a server.properties file into the broker's configuration.

`--host`, `--port` and `--data` are shorthands for Kafka's own settings and are translated here, before the
configuration layer sees them; no setting is interpreted anywhere else in the command.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mainstem.cli.errors import CommandError
from mainstem.cli.up_options import UpOptions
from mainstem.config import BrokerConfig, ConfigError, load_properties, resolve

DEFAULT_HOST = "localhost"
DEFAULT_PORT = 9092
DATA_SETTINGS = ("log.dirs", "log.dir")


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
        file_settings = load_properties(Path(options.config)) if options.config else {}
        set_settings = _set_settings(options)
        _apply_listener(options, file_settings, set_settings)
        _apply_data_dir(data_dir, file_settings, set_settings)
        return resolve(file_settings, set_settings)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"cannot read the settings file {options.config}: {reason}") from None


def _set_settings(options: UpOptions) -> dict[str, str]:
    settings: dict[str, str] = {}
    for item in options.set:
        name, _, value = item.partition("=")
        settings[name.strip()] = value.strip()
    return settings


def _apply_data_dir(
    data_dir: Path | None, file_settings: dict[str, str], set_settings: dict[str, str]
) -> None:
    given = any(name in settings for settings in (file_settings, set_settings) for name in DATA_SETTINGS)
    if data_dir is None and given:
        return
    for name in DATA_SETTINGS:
        file_settings.pop(name, None)
        if name in set_settings:
            raise CommandError(
                f"the data directory is given twice: leave out --set {name} or --data", exit_code=2
            )
    set_settings["log.dirs"] = str(data_dir or default_data_dir())


def _apply_listener(options: UpOptions, file_settings: dict[str, str], set_settings: dict[str, str]) -> None:
    """`--host` and `--port` change the first listener; its name and every further listener stay."""
    asked = options.host is not None or options.port is not None
    if asked and "listeners" in set_settings:
        raise CommandError(
            "--set listeners already holds host and port: leave out --host and --port", exit_code=2
        )
    if not asked and ("listeners" in set_settings or "listeners" in file_settings):
        return
    entries = [entry.strip() for entry in file_settings.get("listeners", "").split(",") if entry.strip()]
    first = entries[0] if entries else f"PLAINTEXT://{DEFAULT_HOST}:{DEFAULT_PORT}"
    name, _, address = first.partition("://")
    host, _, port = address.rpartition(":")
    host = options.host if options.host is not None else host
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    port = str(options.port) if options.port is not None else port
    set_settings["listeners"] = ",".join([f"{name}://{host}:{port}", *entries[1:]])
    if "advertised.listeners" in file_settings:
        _drop_advertised(name, file_settings)


def _drop_advertised(name: str, file_settings: dict[str, str]) -> None:
    """What the file advertised for a listener is stale once its host or port was given by hand."""
    entries = [entry.strip() for entry in file_settings.pop("advertised.listeners").split(",")]
    kept = [entry for entry in entries if entry and entry.partition("://")[0] != name]
    if kept:
        file_settings["advertised.listeners"] = ",".join(kept)
