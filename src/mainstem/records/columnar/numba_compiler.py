"""From a kernel to an object file, by numba. Imported only where a kernel is not in the cache.

numba's own functions take Python's objects, and its cache needs all of numba to load. Here a kernel is
wrapped in a function of addresses and lengths, compiled without Python and without counting references, and
the object file must not want anything that a C program would not have.
"""

import types
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba.core import registry

from mainstem.records.columnar import intrinsics
from mainstem.records.columnar.compiling import Helper, Intrinsic
from mainstem.records.columnar.layout import Kind, Signature

# Parts that carry no types.
_numba: Any = numba
_target: Any = registry.cpu_target

# What LLVM makes of loops that copy or fill.
_ALLOWED_SYMBOLS = {"memcpy", "memmove", "memset"}


def compile_kernel(function: Callable[..., Any], signature: Signature) -> tuple[str, bytes]:
    """The name of the kernel's symbol, and the object file that has it."""
    symbol, module = compile_to_module(function, signature)
    # The machine that numba itself emits for: what it makes can be loaded anywhere in the address space.
    object_file: bytes = _target.target_context.codegen()._tm.emit_object(module)
    return symbol, object_file


def compile_to_module(function: Callable[..., Any], signature: Signature) -> tuple[str, Any]:
    """The name of the kernel's symbol, and LLVM's module that has it."""
    kernel = _numba.njit(nogil=True, forceinline=True, _nrt=False)(_resolved(function))
    entry = _entry(kernel, signature)
    kinds = [found for kind in signature.arguments for found in _numba_types(kind)]
    compiled = _numba.core.compiler.compile_extra(
        _target.typing_context,
        _target.target_context,
        entry,
        tuple(kinds),
        _numba.int64,
        _flags(),
        {},
    )
    symbol: str = compiled.fndesc.llvm_func_name
    module = compiled.library._final_module
    _check_symbols(function.__qualname__, module)
    return symbol, module


def _flags() -> Any:
    flags = _numba.core.compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.nrt = False
    flags.release_gil = True
    return flags


def _entry(kernel: Any, signature: Signature) -> Callable[..., Any]:
    """A function of addresses and lengths around the kernel."""
    names, passed = [], []
    for number, kind in enumerate(signature.arguments):
        names += [f"a{number}", f"n{number}"] if kind.is_array else [f"a{number}"]
        passed.append(f"array_at(a{number}, n{number})" if kind.is_array else f"a{number}")
    call = f"kernel({', '.join(passed)})"
    body = f"return {call}" if signature.result.dtype is not None else f"{call}; return 0"
    scope = {"kernel": kernel, "array_at": intrinsics.array_at}
    exec(f"def entry({', '.join(names)}): {body}", scope)
    entry: Callable[..., Any] = scope["entry"]
    return entry


def _numba_types(kind: Kind) -> list[Any]:
    if not kind.is_array:
        return [_numba.int64]
    return [_numba.types.CPointer(_numba.from_dtype(kind.dtype)), _numba.int64]


@cache
def _helper(helper: Helper) -> Any:
    options = {"forceinline": True} if helper.is_inlined else {}
    return _numba.njit(nogil=True, _nrt=False, **options)(_resolved(helper.function))


def _resolved(function: Callable[..., Any]) -> types.FunctionType:
    """The function, with numba's own in place of what stands for them in its module."""
    assert isinstance(function, types.FunctionType)
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        found = scope.get(name)
        if isinstance(found, Helper):
            scope[name] = _helper(found)
        elif isinstance(found, Intrinsic):
            scope[name] = getattr(intrinsics, found.name)
    return types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__)


def _check_symbols(name: str, module: Any) -> None:
    """A symbol that the loader does not find would end the process."""
    for function in module.functions:
        wanted = function.name
        if function.is_declaration and not wanted.startswith("llvm.") and wanted not in _ALLOWED_SYMBOLS:
            raise RuntimeError(f"the kernel {name} needs {wanted}, which only numba has")
