"""Long work on the event loop, cut into slices of a millisecond between which everybody else is served."""

import asyncio
from time import perf_counter
from typing import Final

_SLICE_SECONDS: Final = 0.001


class Slices:
    """To be made when the work begins; `breathe` belongs between its steps, which are short."""

    def __init__(self) -> None:
        self._busy_seconds = 0.0
        self._began = perf_counter()

    async def breathe(self) -> None:
        """Let others go on, if it is time. What the work looks at may then have changed."""
        taken = perf_counter() - self._began
        if taken >= _SLICE_SECONDS:
            self._busy_seconds += taken
            await asyncio.sleep(0)
            self._began = perf_counter()

    @property
    def busy_seconds(self) -> float:
        """What the work took so far, without the time that others had."""
        return self._busy_seconds + perf_counter() - self._began
