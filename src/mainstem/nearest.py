"""The known name that an unknown one was probably meant to be.

Only error and warning lines use this, so difflib is imported when the first is needed and not at start-up.
"""

from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Words to put after an error about an unknown name; empty when nothing is near."""
    nearest = nearest_name(name, known)
    return "" if nearest is None else f"; did you mean {nearest}?"
