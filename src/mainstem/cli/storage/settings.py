"""What `mainstem storage` reads of a node's server.properties."""

from __future__ import annotations

from pathlib import Path

from mainstem.broker.metadata.metadata_directory import metadata_directory
from mainstem.cli.errors import CommandError, in_two_lines
from mainstem.config import BrokerConfig, ConfigError, load_properties, resolve


def node_config(path: Path) -> BrokerConfig:
    """The settings of the node; what they warn of is said when the node starts."""
    try:
        given = load_properties(path)
        config, _ = resolve(given)
    except ConfigError as error:
        raise in_two_lines(str(error), f"check {path}") from None
    for names in (("process.roles",), ("node.id", "broker.id"), ("log.dirs", "log.dir")):
        if not any(name in given for name in names):
            raise CommandError(f"{path} does not say {names[0]}", f"add {names[0]}=... to it")
    return config


def directories(config: BrokerConfig) -> list[Path]:
    """All that the node keeps data in, in a fixed order."""
    return sorted({Path(text) for text in (*config.log_dirs(), str(metadata_directory(config)))})
