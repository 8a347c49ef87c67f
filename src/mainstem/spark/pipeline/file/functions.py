"""Finds the Python functions and classes that a pipeline names: `file.py:name`, `module:name`, or the thing
itself."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path as FilePath
from typing import Any

from mainstem.spark.pipeline.file.imports import import_file, make_importable
from mainstem.spark.pipeline.parts import Function
from mainstem.spark.pipeline.problems import did_you_mean

# In a checkout of this project, its own modules may be below the pipeline's folder.
_INSTALLED_THERE = ("mainstem", "pyspark_mainstem", "__main__")


class FunctionError(ValueError):
    """There is no such function; `hint` says what to write."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def resolve(function: Function, folder: FilePath) -> Any:
    """The function itself. Modules are also looked for in the folder of the pipeline's file."""
    if not isinstance(function, str):
        return function
    place, colon, name = function.rpartition(":")
    if not colon or not place or not name:
        raise FunctionError(f"{function!r} is no function", "write file.py:function or module:function")
    module = _module(place, folder)
    found = module
    for part in name.split("."):
        names = [
            other for other in vars(found) if not other.startswith("_") and callable(getattr(found, other))
        ]
        found = getattr(found, part, None)
        if found is None:
            raise FunctionError(
                f"there is no {name} in {place}", did_you_mean(part, names, "functions in it are")
            )
    if not callable(found):
        raise FunctionError(f"{name} in {place} is not a function but {type(found).__name__}")
    return found


def send_by_value(folder: FilePath) -> None:
    """Have functions of modules in the pipeline's folder travel to Spark's workers whole, not by their names:
    the workers need not have these files."""
    cloudpickle: Any = importlib.import_module("pyspark.cloudpickle")
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or "site-packages" in file or name.partition(".")[0] in _INSTALLED_THERE:
            continue
        if FilePath(file).is_relative_to(folder):
            cloudpickle.register_pickle_by_value(module)


def _module(place: str, folder: FilePath) -> Any:
    try:
        if place.endswith(".py"):
            file = (folder / FilePath(place).expanduser()).absolute()
            if not file.is_file():
                names = [other.name for other in file.parent.glob("*.py")]
                raise FunctionError(f"there is no file {place}", did_you_mean(file.name, names, "files are"))
            return import_file(file)
        make_importable(folder)
        return importlib.import_module(place)
    except FunctionError:
        raise
    except ModuleNotFoundError as error:
        if error.name == place:
            names = [other.stem for other in folder.glob("*.py")]
            raise FunctionError(f"there is no module {place}", did_you_mean(place, names)) from None
        raise FunctionError(f"{place} cannot be imported: {error}") from None
    except Exception as error:  # whatever the module does wrong when it is imported
        raise FunctionError(f"{place} cannot be imported: {type(error).__name__}: {error}") from None
