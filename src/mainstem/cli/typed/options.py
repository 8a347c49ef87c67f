"""Options that commands of several kinds share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON for a script.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask on a terminal.")]
