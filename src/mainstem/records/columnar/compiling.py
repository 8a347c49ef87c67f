"""Kernels: functions over arrays that run as machine code, compiled once and kept for other processes.

Spark starts many Python workers, and to load numba takes most of a second in each, to compile many seconds.
So what is compiled needs nothing of numba afterwards: a kernel becomes a function over plain addresses and
numbers in an object file, and a process that finds it in the cache loads it with LLVM alone. Where there is
none yet, LLVM makes it from what comes with the package (`shipped`). Only who works on kernels needs numba.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from mainstem.records.columnar import kernel_cache, shipped
from mainstem.records.columnar.layout import Kind, Signature
from mainstem.records.columnar.machine_code import MachineCode

_Function = TypeVar("_Function", bound=Callable[..., Any])

_loading = threading.RLock()


class Intrinsic:
    """The name of something in `intrinsics`, which stands for it until a kernel is compiled."""

    def __init__(self, name: str) -> None:
        self.name = name


class Helper:
    """A function that kernels call, and nobody else."""

    def __init__(self, function: Callable[..., Any], *, is_inlined: bool) -> None:
        self.function = function
        self.is_inlined = is_inlined


class Kernel:
    """A compiled function; its machine code is found or made when it is first called."""

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        self.function = function
        self.signature = signature
        self.was_compiled_here = False
        self._code: MachineCode | None = None
        self._entry: Any = None

    def __call__(self, *arguments: Any) -> int | None:
        entry = self._entry or self._load()
        flat: list[int] = []
        for kind, argument in zip(self.signature.arguments, arguments, strict=True):
            if kind.is_array:
                flat.append(_address(argument, kind))
                flat.append(argument.size)
            else:
                flat.append(argument)
        result = ctypes.c_int64()
        failure = ctypes.c_void_p()
        status = entry(ctypes.byref(result), ctypes.byref(failure), *flat)
        if status:
            raise ArithmeticError(f"the kernel {self.function.__qualname__} failed with status {status}")
        return None if self.signature.result.dtype is None else result.value

    def _load(self) -> Any:
        with _loading:
            if self._entry is None:
                self._code, self.was_compiled_here = kernel_cache.find_or_make(self.name, self._compile)
                self._entry = _entry_type(self.signature)(self._code.address)
        return self._entry

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def _compile(self) -> tuple[str, bytes]:
        found = shipped.object_file_of(self.name)
        if found is not None:
            return found
        from mainstem.records.columnar.numba_compiler import compile_kernel

        return compile_kernel(self.function, self.signature)


def kernel(signature: Signature) -> Callable[[_Function], _Function]:
    """Make a function a kernel with this signature. It is kept under the names of its module and its own."""

    def decorate(function: _Function) -> _Function:
        return cast(_Function, Kernel(function, signature))

    return decorate


def inlined(function: _Function) -> _Function:
    """Mark a helper whose code is put wherever a kernel calls it."""
    return cast(_Function, Helper(function, is_inlined=True))


def called(function: _Function) -> _Function:
    """Mark a helper that kernels call: one that is long, or needed seldom."""
    return cast(_Function, Helper(function, is_inlined=False))


def _address(array: Any, kind: Kind) -> int:
    """Where an array begins. Machine code checks nothing, so whatever is not what it expects stops here."""
    dtype, flags = array.dtype, array.flags
    is_right = dtype is kind.dtype or dtype == kind.dtype
    if not is_right or array.ndim != 1 or not flags.c_contiguous:
        raise TypeError(f"a kernel takes an array of {kind.dtype} without gaps, not {dtype}")
    if kind.is_written and not flags.writeable:
        raise TypeError("a kernel writes to an array that is read-only")
    address: int = array.ctypes.data
    return address


def _entry_type(signature: Signature) -> Any:
    """What the machine code is to C: numba's convention, a status with result and failure by address."""
    flat: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
    for kind in signature.arguments:
        flat += [ctypes.c_void_p, ctypes.c_int64] if kind.is_array else [ctypes.c_int64]
    return ctypes.CFUNCTYPE(ctypes.c_int32, *flat)
