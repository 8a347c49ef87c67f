"""`meta.properties`: Kafka's format, and refusal of what cannot be understood."""

from pathlib import Path

import pytest

from mainstem.storage.directories.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from mainstem.storage.errors import LogDirInvalidError
from mainstem.storage.files.real_files import RealFiles

DIRECTORY_ID = bytes.fromhex("ee44fec101f51fa4926c73ac81c64caf")


def test_it_is_written_as_kafka_does(tmp_path: Path) -> None:
    properties = MetaProperties("AlKxlZMJRoWWnhalSy5pSw", 1, DIRECTORY_ID)
    write_meta_properties(RealFiles(), tmp_path, properties, 1_794_768_373_000)
    assert (tmp_path / "meta.properties").read_text().splitlines() == [
        "#",
        "#Sun Nov 15 18:46:13 UTC 2026",
        "node.id=1",
        "directory.id=7kT-wQH1H6SSbHOsgcZMrw",
        "version=1",
        "cluster.id=AlKxlZMJRoWWnhalSy5pSw",
    ]
    assert read_meta_properties(RealFiles(), tmp_path) == properties


def test_no_file_is_no_identity(tmp_path: Path) -> None:
    assert read_meta_properties(RealFiles(), tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        "version=0\nbroker.id=1\n",
        "",
        "version=1\nnode.id=1\n",
        "version=1\nnode.id=x\ncluster.id=c\ndirectory.id=7kT-wQH1H6SSbHOsgcZMrw\n",
        "version=1\nnode.id=1\ncluster.id=c\ndirectory.id=short\n",
    ],
)
def test_what_is_not_version_one_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(LogDirInvalidError, match=r"meta\.properties"):
        read_meta_properties(RealFiles(), tmp_path)
