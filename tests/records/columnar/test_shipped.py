"""The kernels that come with the package: they belong to these sources, any processor can have them, and a
first compaction or pipeline needs no compiler.
"""

import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import pytest

from mainstem.records.columnar import ship, shipped

# Without numba, and with an empty cache.
_FIRST_RUN = """
import sys
sys.modules["numba"] = None
from mainstem.records.columnar import decode
from mainstem.records.columnar.walk import walk
from mainstem.records.record import Record, build_batch

found = decode(build_batch([Record(0, 1, None, b"value")]), 0, 100)
assert found.value.to_pylist() == [b"value"]
assert walk.was_compiled_here
import mainstem.storage.cleaner.worker
"""


def test_every_kernel_is_shipped_and_belongs_to_these_sources() -> None:
    names = [kernel.name for kernel in ship.kernels()]
    assert len(names) > 10
    advice = "run python -m mainstem.records.columnar.ship"
    assert {shipped.path_of(name) for name in names} == set(shipped.FOLDER.iterdir()), advice
    assert all(shipped.object_file_of(name) is not None for name in names), advice


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_machine_code_can_be_made_for_any_processor(triple: str) -> None:
    llvmlite.binding.initialize_all_targets()
    llvmlite.binding.initialize_all_asmprinters()
    machine = llvmlite.binding.Target.from_triple(triple).create_target_machine()
    for path in shipped.FOLDER.iterdir():
        _, _, bitcode = path.read_bytes().split(b"\n", 2)
        assert shipped.emitted(bitcode, machine)


def test_the_first_run_on_a_machine_needs_no_compiler(tmp_path: Path) -> None:
    left_out = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    subprocess.run(
        [sys.executable, "-c", _FIRST_RUN], env=environment | {"HOME": str(tmp_path)}, check=True, timeout=100
    )


@pytest.mark.parametrize("content", [b"0\nsymbol\nBC", b"{digest}\nsymbol\nno bitcode"])
def test_what_does_not_fit_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    shipped.path_of("a.kernel").write_bytes(content.replace(b"{digest}", shipped.sources_digest().encode()))
    assert shipped.object_file_of("a.kernel") is None
    assert shipped.object_file_of("another") is None
