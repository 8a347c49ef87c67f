"""Which topics a pattern means: one rule for whoever reads by it, and whoever looks at what was read."""

import re


def matches(pattern: str, topic: str) -> bool:
    """Whether the pattern is found anywhere in the name, as Spark's own connector searches for it."""
    return re.search(pattern, topic) is not None
