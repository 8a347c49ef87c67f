"""Kernels that come with the package, as LLVM's bitcode: nobody waits for numba on the first compaction.

Bitcode is of no particular processor, and newer versions of LLVM read that of older ones; to make machine
code of it takes milliseconds. What does not belong to these very sources, as while somebody works on them, or
cannot be read, is passed over, and the kernel is compiled. `ship` makes the files again.
"""

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding

from mainstem.records.columnar.kernel_cache import NUMBA_SETTINGS

# A part of llvmlite that carries no types.
_llvm: Any = llvmlite.binding
_HERE = Path(__file__).parent
FOLDER = _HERE / "bitcode"
# Modules that no kernel is made of or by.
_OTHERS = {"__init__", "batches", "decode", "encode", "kernel_cache", "machine_code", "ship", "shipped"}


def path_of(name: str) -> Path:
    """The file of a kernel: a line with the digest of the sources, one with the symbol, then the bitcode."""
    return FOLDER / f"{name.removeprefix(f'{__package__}.')}.bc"


@cache
def sources_digest() -> str:
    """What the bitcode depends on: everything that kernels are made of, and how they are compiled."""
    digest = hashlib.sha256()
    for source in sorted(_HERE.glob("*.py")):
        if source.stem not in _OTHERS:
            digest.update(f"{source.name}\n".encode() + source.read_bytes())
    digest.update((_HERE.parent / "batch.py").read_bytes())
    return digest.hexdigest()


def object_file_of(name: str) -> tuple[str, bytes] | None:
    """The symbol and the object file of a kernel for this machine; None if it has to be compiled."""
    if any(os.environ.get(setting) for setting in NUMBA_SETTINGS):
        return None  # somebody wants it compiled in a certain way
    try:
        content = path_of(name).read_bytes()
    except FileNotFoundError:
        return None
    digest, symbol, bitcode = content.split(b"\n", 2)
    if digest.decode() != sources_digest():
        return None
    try:
        return symbol.decode(), emitted(bitcode, _target_machine())
    except RuntimeError:
        return None  # this LLVM is older than the one that wrote it


def emitted(bitcode: bytes, machine: Any) -> bytes:
    """An object file for a target machine of LLVM's."""
    module = _llvm.parse_bitcode(bitcode)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    object_file: bytes = machine.emit_object(module)
    return object_file


@cache
def _target_machine() -> Any:
    """For this processor, and for code that may be loaded anywhere in the address space."""
    _llvm.initialize_native_target()
    _llvm.initialize_native_asmprinter()
    target = _llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=_llvm.get_host_cpu_name(),
        features=_llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )
