"""The checksum of record batches, CRC-32C, by the compiled function of the crc32c package.

The package itself, when it is imported, looks up its own version among all that is installed: that takes
longer than half of what else a new process loads of the client. So only its compiled part is loaded.
"""

from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from typing import Final

Checksum = Callable[..., int]


def _load() -> Checksum:
    package = PathFinder.find_spec("crc32c")
    places = package.submodule_search_locations if package is not None else None
    spec: ModuleSpec | None = PathFinder.find_spec("crc32c._crc32c", places) if places else None
    if spec is None or spec.loader is None:  # laid out in another way: its front door takes longer
        from crc32c import crc32c as function

        return function
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    compiled: Checksum = module.crc32c
    return compiled


# Of some bytes; with a second argument, of what goes on behind those with that checksum.
crc32c: Final = _load()
