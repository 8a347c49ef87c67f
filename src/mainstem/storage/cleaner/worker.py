"""The process that cleans: takes jobs from its standard input until that ends, and answers on its output.

It has the least claim to the processor of all that the broker runs, and ends with the broker.
"""

import os
import sys
from collections.abc import Callable

from mainstem.storage.cleaner.cleaning import Cleaning
from mainstem.storage.cleaner.jobs import Answer, Failed, read_job, to_line
from mainstem.storage.errors import is_passing
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.producers.transaction_index import CorruptIndexError

_NICENESS = 10


def main() -> int:
    os.nice(_NICENESS)
    check = _end_with_parent()
    for line in sys.stdin.buffer:
        _answer(_clean(line, check))
    return 0


def _clean(line: bytes, check: Callable[[], None]) -> Answer:
    try:
        return Cleaning(RealFiles(), read_job(line), _answer, check).run()
    except CorruptIndexError as error:
        return Failed(str(error), is_passing=True)  # the broker has it made again
    except OSError as error:
        return Failed(str(error), is_passing=is_passing(error))
    except (ValueError, MemoryError) as error:  # CorruptRecordsError is a ValueError
        return Failed(str(error) or type(error).__name__)


def _end_with_parent() -> Callable[[], None]:
    """A check after each piece: without its broker this process must not write anything more, because
    another broker may begin to clean the same log. And whoever waits for the processor goes first: a piece is
    less than a millisecond, what the scheduler would give is several.
    """
    parent = os.getppid()

    def check() -> None:
        if os.getppid() != parent:
            os._exit(1)
        os.sched_yield()

    return check


def _answer(answer: Answer) -> None:
    sys.stdout.buffer.write(to_line(answer))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
