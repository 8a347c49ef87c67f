"""Directs the log of this process to standard error. Called once, by the command that runs a broker."""

import logging
import sys

from mainstem.logs.flood import FloodGuard
from mainstem.logs.formatters import HumanFormatter, JsonFormatter


def configure(level: str, log_format: str | None = None) -> None:
    """Without a format it is text on a terminal, and JSON where something else reads it."""
    if log_format is None:
        log_format = "text" if sys.stderr.isatty() else "json"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(HumanFormatter() if log_format == "text" else JsonFormatter())
    handler.addFilter(FloodGuard())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
