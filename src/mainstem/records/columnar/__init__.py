"""Record batches to Arrow columns and back, in compiled code and with no Python object per record.

For the data pipeline; compaction uses the kernels alone. The broker never imports any of it: the kernels load
numba, and the columns pyarrow. What is offered here is loaded when it is first asked for, so that whoever
needs a kernel does not load the columns too.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mainstem.records.columnar.decode import Decoded, decode
    from mainstem.records.columnar.encode import encode
    from mainstem.records.columnar.errors import CorruptRecordsError
    from mainstem.records.columnar.murmur2 import murmur2_partitions

__all__ = ["CorruptRecordsError", "Decoded", "decode", "encode", "murmur2_partitions"]


class _Offered:
    """A name of one of the modules. It also stands against Python's habit of putting a module that is
    imported where a function of the same name is expected.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __get__(self, package: object, kind: type) -> Any:
        return getattr(import_module(f"{__name__}.{self._module}"), self._name)

    def __set__(self, package: object, value: object) -> None:
        pass


class _Package(ModuleType):
    CorruptRecordsError = _Offered("errors", "CorruptRecordsError")
    Decoded = _Offered("decode", "Decoded")
    decode = _Offered("decode", "decode")
    encode = _Offered("encode", "encode")
    murmur2_partitions = _Offered("murmur2", "murmur2_partitions")


sys.modules[__name__].__class__ = _Package
