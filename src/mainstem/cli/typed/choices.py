"""Options whose values are some of a few known words."""

from __future__ import annotations

from mainstem.cli.errors import CommandError


def spelled(given: list[str], known: tuple[str, ...], option: str) -> list[str]:
    """The known spelling of each, whatever its case; several may stand in one option, with commas."""
    by_lower = {name.lower(): name for name in known}
    texts = [text.strip() for item in given for text in item.split(",")]
    for text in texts:
        if text.lower() not in by_lower:
            raise CommandError(f"{option} {text!r} is not known", f"use some of {', '.join(known)}", 2)
    return [by_lower[text.lower()] for text in texts]
