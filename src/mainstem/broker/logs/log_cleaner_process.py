"""A process that cleans logs for the broker, one after the other; `storage.cleaner.worker` is its inside."""

from asyncio.subprocess import Process
from collections.abc import AsyncIterator

from mainstem.broker.processes import Processes
from mainstem.storage.cleaner.jobs import Answer, CleanedGroup, Job, command, read_answer, to_line


class CleanerLostError(Exception):
    """The process ended in the middle of a job."""


class CleanerProcess:
    """A running process. It takes one job at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, processes: Processes) -> "CleanerProcess":
        """OSError when it cannot be started."""
        return cls(await processes.start(command()))

    @property
    def pid(self) -> int:
        return self._process.pid

    async def run(self, job: Job) -> AsyncIterator[Answer]:
        """What it says about a job, to the end of it; CleanerLostError when it dies."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(to_line(job))
            await self._process.stdin.drain()
            while line := await self._process.stdout.readline():
                answer = read_answer(line)
                yield answer
                if not isinstance(answer, CleanedGroup):
                    return
        except ConnectionError:
            pass
        raise CleanerLostError(await self._last_words())

    async def _last_words(self) -> str:
        assert self._process.stderr is not None
        text = (await self._process.stderr.read()).decode(errors="replace").strip()
        status = await self._process.wait()
        return f"the process that cleans ended with status {status}: {text.splitlines()[-1] if text else ''}"

    async def end(self) -> None:
        """End it at once: what it has not reported is worth nothing."""
        if self._process.returncode is None:
            try:
                self._process.kill()
            except ProcessLookupError:
                pass
        await self._process.wait()
