"""`mainstem dump-log`: prints what is in the files of a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = "x"


def dump_log(paths: Annotated[list[Path], typer.Argument()]) -> None:
    """Print."""
