"""CPU time and resident memory of a broker, from /proc. Reads only; a process that vanished counts as zero.

A broker may be a script that starts a process, or may use child processes: always the whole tree is counted.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_BYTES_PER_MB = 1_000_000


class Memory(NamedTuple):
    resident_mb: float
    peak_mb: float


def process_tree(pid: int) -> list[int]:
    """The process and all its living descendants."""
    found = [pid]
    for parent in found:
        for task in _children_files(parent):
            found.extend(int(child) for child in _read(task).split())
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of the tree, with children that have ended."""
    ticks = 0
    for member in process_tree(pid):
        text = _read(Path(f"/proc/{member}/stat"))
        # The command name may hold spaces and brackets: count the fields after its last bracket.
        fields = text[text.rfind(")") + 2 :].split()
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS_PER_S


def cpu_ns(pid: int) -> int:
    """The same for all threads that are still there, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int(_read(thread / "schedstat").split()[0]) for thread in threads)


def memory(pid: int) -> Memory:
    """Resident memory of the tree, now and at its highest (the sum of each member's highest)."""
    resident_kb = peak_kb = 0
    for member in process_tree(pid):
        resident_kb += _status_kb(member, "VmRSS")
        peak_kb += _status_kb(member, "VmHWM")
    return Memory(resident_kb * 1024 / _BYTES_PER_MB, peak_kb * 1024 / _BYTES_PER_MB)


def resident_mb(pids: Iterable[int]) -> float:
    """Resident memory of these processes alone."""
    return sum(_status_kb(pid, "VmRSS") for pid in pids) * 1024 / _BYTES_PER_MB


def command(pid: int) -> str:
    """The name of its program."""
    return _read(Path(f"/proc/{pid}/comm")).strip()


def _status_kb(pid: int, field: str) -> int:
    for line in _read(Path(f"/proc/{pid}/status")).splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    return 0


def _children_files(pid: int) -> list[Path]:
    try:
        return [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
