"""Data directories that cannot be served: one line that says why, and a non-zero exit code."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mainstem.protocol.errors import ErrorCode
from mainstem.storage.directories.meta_properties import read_meta_properties
from mainstem.storage.files.real_files import RealFiles
from mainstem.testing import Broker
from tests.faults.filesystems import SmallDisk
from tests.faults.ledger import connect, read_all
from tests.faults.topic_changes import create_topic, partition_folders, payloads_in, write


def _refusal(*data_dirs: Path | str, node_id: int = 1, settings: Mapping[str, str] | None = None) -> str:
    """The one line with which a start is refused."""
    command = [sys.executable, "-m", "mainstem", "up", "--port", "0", "--set", f"node.id={node_id}"]
    command += ["--set", f"log.dirs={','.join(map(str, data_dirs))}"]
    for name, value in (settings or {}).items():
        command += ["--set", f"{name}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    lines = [
        line for line in done.stderr.splitlines() if not line.startswith("  -> ") and " INFO " not in line
    ]
    assert len(lines) == 1, done.stderr
    return lines[0]


def _fill(data_dir: Path, topic: str = "t") -> None:
    with Broker(data_dir=data_dir) as broker, connect(broker) as client:
        create_topic(client, topic, 1)
        assert write(client, topic, b"kept:0") == ErrorCode.NONE


def test_a_directory_in_use(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        assert f"{tmp_path} is in use by another broker" in _refusal(tmp_path)
        with connect(broker) as client:
            create_topic(client, "t", 1)


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("form", ["{}/a/", "{}/a/../a", "{}/link", "{}/link-above/a"])
def test_one_directory_under_two_names(tmp_path: Path, form: str, is_there: bool) -> None:
    one, other = str(tmp_path / "a"), form.format(tmp_path)
    if is_there:
        Path(one).mkdir()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "link-above").symlink_to(tmp_path)
    refusal = _refusal(one, tmp_path / "b", other)
    assert refusal == f"mainstem: log.dirs: {one} and {other} are the same directory"
    assert not (tmp_path / "b").exists()


def test_a_directory_of_another_node(tmp_path: Path) -> None:
    _fill(tmp_path)
    assert "belongs to node 1, this is node 2" in _refusal(tmp_path, node_id=2)


def test_a_directory_of_another_cluster(tmp_path: Path) -> None:
    _fill(tmp_path / "a")
    _fill(tmp_path / "b")
    assert "belongs to cluster" in _refusal(tmp_path / "a", tmp_path / "b")


def test_a_lost_metadata_directory(tmp_path: Path) -> None:
    """An empty one in its place would know of no topic, and of no vote."""
    with Broker(data_dir=f"{tmp_path / 'a'},{tmp_path / 'b'}") as broker, connect(broker) as client:
        create_topic(client, "t", 4)
    shutil.rmtree(tmp_path / "a")
    line = _refusal(tmp_path / "a", tmp_path / "b")
    assert f"{tmp_path / 'a'}, where the metadata log belongs, is not formatted" in line
    assert not (tmp_path / "a" / "meta.properties").exists()
    assert list((tmp_path / "b").glob("t-*")), "nothing is set aside"


def test_directories_in_another_order(tmp_path: Path) -> None:
    with Broker(data_dir=f"{tmp_path / 'a'},{tmp_path / 'b'}"):
        pass
    assert f"the metadata log lies in {tmp_path / 'a'}" in _refusal(tmp_path / "b", tmp_path / "a")
    _refusal(tmp_path / "new", tmp_path / "a")
    assert not (tmp_path / "b" / "__cluster_metadata-0").exists()


def test_another_directory_than_that_of_the_metadata_may_be_lost(tmp_path: Path) -> None:
    dirs = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    with Broker(data_dir=dirs) as broker, connect(broker) as client:
        create_topic(client, "t", 2)
    shutil.rmtree(tmp_path / "b")
    with Broker(data_dir=dirs) as broker, connect(broker) as client:
        codes = {write(client, "t", b"more:0", index) for index in range(2)}
        assert ErrorCode.NONE in codes


def test_a_metadata_directory_of_its_own_has_an_identity(tmp_path: Path) -> None:
    """As Kafka's format step gives it one, by which the quorum knows this node."""
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}
    with Broker(settings, data_dir=tmp_path / "a") as broker, connect(broker) as client:
        create_topic(client, "t", 1)
        assert write(client, "t", b"kept:0") == ErrorCode.NONE
    identity = read_meta_properties(RealFiles(), tmp_path / "metadata")
    of_data = read_meta_properties(RealFiles(), tmp_path / "a")
    assert identity is not None
    assert of_data is not None
    assert (identity.cluster_id, identity.node_id) == (of_data.cluster_id, of_data.node_id)
    assert identity.directory_id != of_data.directory_id
    shutil.rmtree(tmp_path / "metadata")
    refusal = _refusal(tmp_path / "a", settings=settings)
    assert f"{tmp_path / 'metadata'}, where the metadata log belongs, is not formatted" in refusal


def test_a_metadata_directory_without_an_identity_goes_by_that_of_the_data(tmp_path: Path) -> None:
    """As nodes left it that gave it none."""
    _fill(tmp_path / "a")
    (tmp_path / "metadata").mkdir()
    (tmp_path / "a" / "__cluster_metadata-0").rename(tmp_path / "metadata" / "__cluster_metadata-0")
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}
    for _ in range(2):
        with Broker(settings, data_dir=tmp_path / "a") as broker, connect(broker) as client:
            assert payloads_in(client, "t") == (b"kept:0",)
    assert read_meta_properties(RealFiles(), tmp_path / "metadata") == read_meta_properties(
        RealFiles(), tmp_path / "a"
    )


def test_a_read_only_directory(tmp_path: Path) -> None:
    with SmallDisk(tmp_path / "disk", 4 * 1024 * 1024) as disk:
        _fill(disk.path / "data")
        subprocess.run(["mount", "-o", "remount,ro", str(disk.path)], check=True)
        assert "Read-only file system" in _refusal(disk.path / "data")


def test_a_read_only_directory_beside_another(tmp_path: Path) -> None:
    """Its partitions are offline, the others are served."""
    with SmallDisk(tmp_path / "disk", 4 * 1024 * 1024) as disk:
        dirs = f"{tmp_path / 'well'},{disk.path / 'data'}"
        with Broker(data_dir=dirs) as broker, connect(broker) as client:
            create_topic(client, "t", 2)
            assert [write(client, "t", b"kept:0", index) for index in range(2)] == [ErrorCode.NONE] * 2
        subprocess.run(["mount", "-o", "remount,ro", str(disk.path)], check=True)
        with Broker(data_dir=dirs) as broker, connect(broker) as client:
            codes = [write(client, "t", b"more:0", index) for index in range(2)]
            assert codes == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
            assert "Read-only file system" in broker.log
        subprocess.run(["mount", "-o", "remount,rw", str(disk.path)], check=True)
        with Broker(data_dir=dirs) as broker, connect(broker) as client:
            assert [len(read_all(client, "t", index)) for index in range(2)] == [2, 1]


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe\x00", b"version=7\n"])
def test_an_unreadable_identity(tmp_path: Path, damage: bytes) -> None:
    _fill(tmp_path)
    (tmp_path / "meta.properties").write_bytes(damage)
    assert str(tmp_path / "meta.properties") in _refusal(tmp_path)


def test_a_partition_in_two_directories(tmp_path: Path) -> None:
    _fill(tmp_path / "a")
    (tmp_path / "b").mkdir()
    shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "b" / "t-0")
    line = _refusal(tmp_path / "a", tmp_path / "b")
    assert "t-0" in line
    assert str(tmp_path / "a") in line
    assert str(tmp_path / "b") in line


def test_a_folder_of_a_topic_that_is_not_known_is_set_aside(tmp_path: Path) -> None:
    _fill(tmp_path / "here", "mine")
    _fill(tmp_path / "elsewhere", "theirs")
    shutil.copytree(tmp_path / "elsewhere" / "theirs-0", tmp_path / "here" / "theirs-0")
    with Broker(data_dir=tmp_path / "here") as broker, connect(broker) as client:
        assert payloads_in(client, "mine") == (b"kept:0",)
        assert partition_folders(broker) == {"mine-0"}
        assert "theirs-0 belongs to no topic" in broker.log
        create_topic(client, "theirs", 1)
        assert payloads_in(client, "theirs") == ()
        (stray,) = broker.data_dir.glob("theirs-0.*-stray")
        assert b"kept:0" in (stray / f"{0:020d}.log").read_bytes()


def test_a_folder_of_an_earlier_topic_of_that_name_is_set_aside(tmp_path: Path) -> None:
    _fill(tmp_path / "here", "t")
    _fill(tmp_path / "elsewhere", "t")
    shutil.rmtree(tmp_path / "here" / "t-0")
    shutil.copytree(tmp_path / "elsewhere" / "t-0", tmp_path / "here" / "t-0")
    with Broker(data_dir=tmp_path / "here") as broker, connect(broker) as client:
        assert payloads_in(client, "t") == ()
        assert len(list(broker.data_dir.glob("t-0.*-stray"))) == 1
