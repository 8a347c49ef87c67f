"""A driver that commits one micro-batch and kills itself after a certain step, run as a script.

    python sink_commit_main.py BATCH STEP

BATCH is a file with the pickled `BatchCommit`; STEP is how many steps it lives.
"""

import os
import pickle
import signal
import sys
from pathlib import Path

from mainstem.spark.sink.transaction import commit_steps
from mainstem.wire import Cluster


def main() -> None:
    batch = pickle.loads(Path(sys.argv[1]).read_bytes())
    left = int(sys.argv[2])
    with Cluster(batch.options.client) as cluster:
        for step in commit_steps(cluster, batch):
            left -= 1
            if left == 0:
                print(step.name, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
    print("DONE", flush=True)


if __name__ == "__main__":
    main()
