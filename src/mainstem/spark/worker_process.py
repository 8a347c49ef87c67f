"""What a Python process of Spark's is told when it gets a task, so that it reads and writes more quickly.

Spark keeps such a process for one task after another, each of which hands on hundreds of megabytes.
"""

from __future__ import annotations

import ctypes
import gc
from functools import cache
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
# The largest that glibc takes, and how much may lie ready for what comes next.
_OWN_MAPPING_BYTES: Final = 32 * 1024 * 1024
_KEPT_BYTES: Final = 128 * 1024 * 1024


def begin_task() -> None:
    """To be called before anything large is made."""
    _keep_memory()
    # Spark has a worker look for garbage after each task. Among all that PySpark and Arrow have loaded, and
    # keep, that takes as long as reading a hundred thousand rows.
    gc.freeze()


@cache
def _keep_memory() -> None:
    """Else the memory of each Arrow batch goes back to the system, which has to fill it with zeros before it
    gives it out again for the next one: that is a third of what a reader does.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return  # another C library than glibc
    mallopt(_M_MMAP_THRESHOLD, _OWN_MAPPING_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
