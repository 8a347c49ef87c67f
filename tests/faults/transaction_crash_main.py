"""A broker that kills itself right before or after it writes a certain record, run as a script.

    python transaction_crash_main.py ORDER up ...

ORDER is a file that a test puts there when the moment has come: `before` or `after`, then the words that tell
the write, see `describe`. It hooks into the call with which batches are written, and changes nothing else.
"""

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem.cli.main import main
from mainstem.coordinator.transaction.metadata import State
from mainstem.records.batch import read_header
from mainstem.records.record import iter_records
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.segments.segment import LOG_SUFFIX

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

_STATES = "__transaction_state"
_STATUS_POSITION = 16  # behind version, producer id, epoch and time-out


def describe(folder: str, data: memoryview) -> str:
    """`state ONGOING`, `records of orders`, `marker of orders`: a topic is told without its partition."""
    topic = folder.rpartition("-")[0]
    if topic == _STATES:
        (record, *_) = iter_records(data)
        return f"state {State((record.value or bytes(17))[_STATUS_POSITION]).name}"
    return f"{'marker' if read_header(data).is_control else 'records'} of {topic}"


class Crash:
    """Takes the place of the real disk's `pwrite`."""

    def __init__(self, order: Path) -> None:
        self._order = order
        self._pwrite = os.pwrite
        self._met: list[str] = []

    def __call__(self, descriptor: int, data: "Buffer", position: int) -> int:
        if not self._order.exists():
            self._met.clear()
            return self._pwrite(descriptor, data, position)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.suffix != LOG_SUFFIX:
            return self._pwrite(descriptor, data, position)  # an index
        moment, wanted = self._order.read_text().split(" ", 1)
        what = describe(path.parent.name, memoryview(data))
        self._met.append(what)
        # A write that comes several times has its number behind it.
        is_wanted = wanted in (what, f"{what} {self._met.count(what)}")
        if is_wanted and moment == "before":
            _die()
        written = self._pwrite(descriptor, data, position)
        if is_wanted:
            _die()
        return written


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    RealFiles.pwrite = staticmethod(Crash(Path(sys.argv.pop(1))))
    sys.exit(main())
