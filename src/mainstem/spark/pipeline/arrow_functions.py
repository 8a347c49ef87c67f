"""Makes Spark functions of our callables on Arrow arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from pyspark.sql import functions


def arrow_function(function: Callable[[Any], Any], kind: str) -> Any:
    """A function from a column to a column; `kind` is the DDL of its result."""
    with warnings.catch_warnings():
        # Spark would rather read type hints, which an object with a `__call__` cannot show it.
        warnings.simplefilter("ignore", UserWarning)
        untyped: Any = functions  # its type stubs lack these two
        return untyped.arrow_udf(function, kind, untyped.ArrowUDFType.SCALAR)
