"""Makes the bitcode of all kernels again, which comes with the package; to be run after a change in this
folder, as `python -m mainstem.records.columnar.ship`.
"""

import os
import pkgutil
from importlib import import_module

from mainstem.records import columnar
from mainstem.records.columnar import shipped
from mainstem.records.columnar.compiling import Kernel


def kernels() -> list[Kernel]:
    """All that there are, each once."""
    found: dict[str, Kernel] = {}
    for module in pkgutil.iter_modules(columnar.__path__, f"{columnar.__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Kernel):
                found[value.name] = value
    return list(found.values())


def main() -> None:
    # Before numba is loaded: for no particular processor.
    os.environ |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    from mainstem.records.columnar.numba_compiler import compile_to_module

    shipped.FOLDER.mkdir(exist_ok=True)
    for old in shipped.FOLDER.iterdir():
        old.unlink()
    for kernel in kernels():
        symbol, module = compile_to_module(kernel.function, kernel.signature)
        header = f"{shipped.sources_digest()}\n{symbol}\n".encode()
        shipped.path_of(kernel.name).write_bytes(header + module.as_bitcode())


if __name__ == "__main__":
    main()
