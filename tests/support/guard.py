"""Runs a command and ends it when its owner ends, however that happens.

    python guard.py OWNER_PID COMMAND...

The test session is the owner. A session that is killed cannot clean up after itself, so this process watches
it from outside. SIGTERM kills the child, SIGHUP asks it to end; it ends nothing else, ever.
"""

import os
import signal
import subprocess
import sys
from types import FrameType

_POLL_SECONDS = 0.5


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main(owner_pid: int, command: list[str]) -> int:
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def end(_signal: int, _frame: FrameType | None) -> None:
        child.kill()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        child.terminate()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, ask)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            return child.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if not _is_alive(owner_pid):
                child.kill()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
