"""The disk of this machine, whose calls a test may exchange: to fail, to wait, to be counted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mainstem.storage.files.real_files import RealFiles


class FailingFiles(RealFiles):
    """Handed in like any disk. What a test does not exchange is done as ever."""

    def __init__(self, **calls: Callable[..., Any]) -> None:
        for name, call in calls.items():
            assert hasattr(RealFiles, name), name
            setattr(self, name, call)

    @contextmanager
    def exchanged(self, **calls: Callable[..., Any]) -> Iterator[None]:
        """Have these calls instead of the real ones, for a while."""
        FailingFiles.__init__(self, **calls)
        try:
            yield
        finally:
            for name in calls:
                delattr(self, name)

    def failing(self, *names: str, error: OSError) -> Any:
        """Have these calls fail."""

        def fail(*_: object) -> None:
            raise error

        return self.exchanged(**dict.fromkeys(names, fail))
