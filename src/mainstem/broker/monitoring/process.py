"""The metrics of the process, under the names that Prometheus' own client libraries give them."""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from mainstem import __version__
from mainstem.broker.monitoring.scrape import Collector
from mainstem.metrics import Exposition, label


def process(started_seconds: float) -> Collector:
    def collect(out: Exposition) -> Iterator[None]:
        _process(out)
        out.gauge("process_start_time_seconds", "When the node was started.").add(started_seconds)
        yield

    return collect


def _process(out: Exposition) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    out.counter("process_cpu_seconds_total", "User and system CPU time.").add(usage.ru_utime + usage.ru_stime)
    memory = out.gauge("process_resident_memory_bytes", "Memory in use.")
    virtual = out.gauge("process_virtual_memory_bytes", "Address space in use.")
    files = out.gauge("process_open_fds", "Open files and sockets.")
    pages = _pages()
    if pages is not None:
        virtual.add(pages[0] * resource.getpagesize())
        memory.add(pages[1] * resource.getpagesize())
    else:
        memory.add(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
    count = _open_files()
    if count is not None:
        files.add(count)
    out.gauge("process_max_fds", "How many there may be.").add(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    version = f"{label('version', __version__)},{label('python', sys.version.split()[0])}"
    out.gauge("mainstem_build_info", "Always 1; what runs is in the labels.").add(1, version)


def _pages() -> tuple[int, int] | None:
    """Virtual and resident, where there is a /proc."""
    try:
        virtual, resident, *_ = Path("/proc/self/statm").read_text().split()
    except (OSError, ValueError):
        return None
    return int(virtual), int(resident)


def _open_files() -> int | None:
    try:
        # The size of the folder, from Linux 6.2 on; to list thousands of sockets takes milliseconds.
        return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))
    except OSError:
        return None
