"""The node's only way to start child processes, so that a simulation can hand in one that starts none."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence

_LINE_BYTES_MAX = 64 << 20


class Processes:
    """Children of this process. OSError when one cannot be started."""

    async def start(self, command: Sequence[str]) -> Process:
        """One that is talked to in lines."""
        return await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_LINE_BYTES_MAX
        )

    async def run(self, command: Sequence[str]) -> tuple[int, str]:
        """Wait for one that says nothing unless it fails: its exit status, and its last words."""
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
        try:
            _, output = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        lines = output.decode(errors="replace").splitlines()
        return process.returncode or 0, lines[-1] if lines else ""
