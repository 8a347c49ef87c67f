"""A process that Spark keeps for its tasks keeps its memory, too."""

import subprocess
import sys

import pytest

_PROGRAM = """
import gc, resource
from mainstem.spark.worker_process import begin_task

begin_task()
begin_task()
assert gc.get_freeze_count() > 0

def some_batches():
    held = [bytearray(1_000_000) for _ in range(30)]

for _ in range(3):
    some_batches()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    some_batches()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")
def test_memory_that_was_let_go_is_there_for_what_comes_next() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    # If all were new from the system, they would have more than a hundred thousand pages.
    assert int(done.stdout) < 1_000
