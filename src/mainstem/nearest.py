"""The known name that an unknown one was probably meant to be.

Only error and warning lines use this, so difflib is imported when the first is needed and not at start-up.
"""

from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The nearest, whatever its case; `cutoff` says how near it has to be (1 is the same)."""
    from difflib import get_close_matches

    by_lower = {other.lower(): other for other in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else None


def suggestion(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint of its own, after an error about an unknown name; `otherwise` when nothing is near."""
    nearest = nearest_name(name, known)
    return otherwise if nearest is None else f"did you mean {nearest}?"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The same as the end of an error's line."""
    found = suggestion(name, known)
    return f"; {found}" if found else ""
