"""CPU time and resident memory of a broker, from /proc. Reads only; a process that vanished counts as zero.

A broker may be a script that starts a process, or may use child processes: always the whole tree is counted.
"""

import os
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


def memory(pid: int) -> Memory:
    """Resident memory of the tree, now and at its highest (the sum of each member's highest)."""
    resident_kb = peak_kb = 0
    for member in process_tree(pid):
        for line in _read(Path(f"/proc/{member}/status")).splitlines():
            if line.startswith("VmRSS:"):
                resident_kb += int(line.split()[1])
            elif line.startswith("VmHWM:"):
                peak_kb += int(line.split()[1])
    return Memory(resident_kb * 1024 / _BYTES_PER_MB, peak_kb * 1024 / _BYTES_PER_MB)


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
