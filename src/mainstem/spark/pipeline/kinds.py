"""Finds the kinds that a folder of modules declares, so that a new kind is a new module and nothing else."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from typing import TypeVar

Base = TypeVar("Base")


def kinds_in(
    package: str, folders: Iterable[str], base: type[Base], *, first: tuple[str, ...]
) -> tuple[type[Base], ...]:
    """The classes made from `base` that say which KIND they are. Those of the modules named `first` come
    first wherever kinds are listed for people, the others follow by name."""
    files = (file for folder in folders for file in os.listdir(folder))
    names = {file.removesuffix(".py") for file in files if file.endswith(".py") and file != "__init__.py"}
    found: list[type[Base]] = []
    for name in (*first, *sorted(names.difference(first))):
        module = importlib.import_module(f"{package}.{name}")
        found += [
            each
            for each in vars(module).values()
            if isinstance(each, type)
            and issubclass(each, base)
            and each.__module__ == module.__name__
            and getattr(each, "KIND", None)
        ]
    return tuple(found)
