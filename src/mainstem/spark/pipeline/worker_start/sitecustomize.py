"""Python runs this by itself when its folder is on the path, before anything else: it makes Spark's workers
start fast.

Spark puts a zip with PySpark first on the path of its Python processes. Modules in a zip are compiled anew
in each process, 0.8 seconds of it, and several start for each query. Where the same PySpark is installed as
files, the zip is taken off the path. Nothing else is done here, and nothing may be imported that a bare
Python lacks.
"""

from __future__ import annotations

import os
import sys


def _without_zips(path: list[str], has_pyspark: bool) -> list[str]:
    return [
        entry for entry in path if not (has_pyspark and entry.endswith(".zip") and "/python/lib/" in entry)
    ]


sys.path[:] = _without_zips(
    sys.path,
    any(
        os.path.isfile(os.path.join(entry, "pyspark", "worker.py"))
        for entry in sys.path
        if "site-packages" in entry
    ),
)
