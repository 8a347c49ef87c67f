"""Makes memory warm before a measurement: the first touch of a page costs ten times the second on a
virtual machine.

Freed memory goes back to the host after a few seconds, so that every phase would begin with cold pages, some
more than others, and measure the host instead of the broker.
"""

import os
from pathlib import Path

_CHUNK = bytes(1024 * 1024)


def warm_pages(directory: Path, size_bytes: int) -> None:
    """Fill the page cache with a file of this size and give the pages back at once, still warm."""
    path = directory / "warm-pages"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        for _ in range(size_bytes // len(_CHUNK)):
            os.write(descriptor, _CHUNK)
    finally:
        os.close(descriptor)
        path.unlink()
