"""Object files as functions of this process, by LLVM's loader and nothing else."""

from functools import cache
from typing import Any

import llvmlite.binding

# A part of llvmlite that carries no types.
_llvm: Any = llvmlite.binding


class MachineCode:
    """The function of this name in an object file. It lasts as long as the process."""

    def __init__(self, symbol: str, object_file: bytes) -> None:
        engine = _engine()
        engine.add_object_file(_llvm.ObjectFileRef.from_data(object_file))
        engine.finalize_object()
        self.address: int = engine.get_function_address(symbol)
        if not self.address:
            raise ValueError(f"there is no {symbol} in the object file")


@cache
def _engine() -> Any:
    _llvm.initialize_native_target()
    _llvm.initialize_native_asmprinter()
    machine = _llvm.Target.from_default_triple().create_target_machine()
    return _llvm.create_mcjit_compiler(_llvm.parse_assembly(""), machine)
