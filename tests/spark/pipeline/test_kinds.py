"""A kind is found because its module is there, and is listed where people expect it."""

import importlib
import sys
from pathlib import Path

import pytest

from mainstem.spark.pipeline import formats, sinks, sources, steps
from mainstem.spark.pipeline.kinds import kinds_in

MODULE = """\
class Own(dict):
    KIND = "own"


class Shared(dict):
    KIND = ""


class Unrelated(list):
    KIND = "unrelated"
"""


def test_a_module_declares_a_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "room_of_kinds"
    folder.mkdir()
    for name in ("__init__", "apple", "pear", "zebra"):
        (folder / f"{name}.py").write_text("" if name == "__init__" else MODULE)
    (folder / "__pycache__").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        importlib.import_module("room_of_kinds")
        found = kinds_in("room_of_kinds", [str(folder)], dict, first=("zebra",))
    finally:
        for name in [name for name in sys.modules if name.startswith("room_of_kinds")]:
            del sys.modules[name]
    assert [(kind.__module__.rpartition(".")[2], kind.__name__) for kind in found] == [
        ("zebra", "Own"),
        ("apple", "Own"),
        ("pear", "Own"),
    ]


def test_the_kinds_that_there_are() -> None:
    assert [kind.KIND[0] for kind in sources.KINDS] == ["topic", "file"]
    assert [kind.KIND[0] for kind in steps.KINDS] == [
        *("sql", "python", "watermark", "deduplicate", "aggregate", "join", "stateful")
    ]
    assert [kind.KIND[0] for kind in sinks.KINDS] == [
        *("topic", "parquet", "delta", "iceberg", "jdbc", "console", "python")
    ]
    assert list(formats.FORMATS) == ["json", "csv", "avro", "protobuf", "raw"]
    assert formats.ENCODINGS == ("json", "csv", "avro", "raw")
