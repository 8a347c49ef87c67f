"""Options and arguments that several `groups` commands share."""

from __future__ import annotations

from typing import Annotated

import typer

GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]
GroupNames = Annotated[list[str], typer.Argument(metavar="GROUP...", help="One or more groups.")]
MaybeGroupNames = Annotated[
    list[str] | None, typer.Argument(metavar="[GROUP...]", help="Which groups; all by default.")
]
