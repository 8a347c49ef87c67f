"""Imports the Python files that belong to a pipeline, and the modules that lie beside them."""

import hashlib
import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import Any


def make_importable(folder: Path) -> None:
    """Let the modules of a folder be imported: before installed packages, but after Python's own modules. A
    file json.py beside a pipeline must not become the json of every library, here or in a child process."""
    if str(folder) in sys.path:
        return
    own = {
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        sysconfig.get_config_var("DESTSHARED"),
    }
    last = max((place for place, entry in enumerate(sys.path) if entry in own), default=-1)
    sys.path.insert(last + 1, str(folder))


def import_file(path: Path) -> Any:
    """Import a Python file under its own name, with its folder importable. A name that is taken already, by
    Python itself or by another file, is not taken away from its owner."""
    name = path.stem
    known = sys.modules.get(name)
    if name in sys.stdlib_module_names or (known is not None and getattr(known, "__file__", "") != str(path)):
        name = f"{name}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
        known = sys.modules.get(name)
    if known is not None:
        return known
    make_importable(path.parent)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
