"""`mainstem storage`: what formatting leaves, what it refuses, and what it says of directories."""

from pathlib import Path

import pytest

from mainstem.broker.metadata.snapshots import SnapshotStore
from mainstem.cluster.raft.control_records import VoterEndpoint
from mainstem.cluster.records import FeatureLevelRecord
from mainstem.cluster.snapshot import BOOTSTRAP_FILE, Snapshot, SnapshotId, read_bootstrap
from mainstem.protocol.uuids import uuid_from_text
from mainstem.storage.directories.meta_properties import MetaProperties, read_meta_properties
from mainstem.storage.files.real_files import RealFiles
from tests.cli.command import run_command

CLUSTER = "Zm9ybWF0dGVkLWNsdXN0ZQ"
DIRECTORIES = {number: f"{number}AAAAAAAAAAAAAAAAAAAAA" for number in (1, 2, 3)}
VOTERS = ",".join(f"{number}@127.0.0.1:{9090 + number}:{DIRECTORIES[number]}" for number in (3, 1, 2))


def node(folder: Path, **settings: str) -> Path:
    """The file of a node with two data directories."""
    lines = {
        "process.roles": "broker,controller",
        "node.id": "2",
        "listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093",
        "log.dirs": f"{folder / 'a'},{folder / 'b'}",
    } | {name.replace("_", "."): value for name, value in settings.items()}
    path = folder / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return path


def format_node(path: Path, *options: str, cluster: str = CLUSTER) -> str:
    done = run_command("storage", "format", "-t", cluster, "-c", str(path), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(path: Path, *options: str, cluster: str = CLUSTER) -> str:
    done = run_command("storage", "format", "-t", cluster, "-c", str(path), *options)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def meta(folder: Path) -> MetaProperties:
    found = read_meta_properties(RealFiles(), folder)
    assert found is not None
    return found


def first_levels(folder: Path) -> dict[str, int]:
    records = read_bootstrap((folder / BOOTSTRAP_FILE).read_bytes())
    assert all(isinstance(record, FeatureLevelRecord) for record in records)
    return {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)}


def first_snapshot(folder: Path) -> Snapshot:
    return SnapshotStore(RealFiles(), folder / "__cluster_metadata-0").read(SnapshotId(0, 0), CLUSTER)


def test_a_standalone_controller_is_its_own_first_voter(tmp_path: Path) -> None:
    said = format_node(node(tmp_path), "--standalone")
    assert said == (
        f"Formatting dynamic metadata voter directory {tmp_path / 'a'} with metadata.version 4.3-IV0.\n"
        f"Formatting data directory {tmp_path / 'b'} with metadata.version 4.3-IV0.\n"
    )
    ours = meta(tmp_path / "a")
    assert (ours.cluster_id, ours.node_id) == (CLUSTER, 2)
    assert meta(tmp_path / "b").directory_id != ours.directory_id
    snapshot = first_snapshot(tmp_path / "a")
    assert snapshot.kraft_version == 1
    assert snapshot.voters is not None
    (voter,) = snapshot.voters.voters
    assert (voter.voter_id, voter.voter_directory_id) == (2, ours.directory_id)
    assert voter.endpoints == [VoterEndpoint("CONTROLLER", "127.0.0.1", 19093)]
    assert not (tmp_path / "b" / "__cluster_metadata-0").exists()


def test_initial_controllers_are_the_voters_of_every_node(tmp_path: Path) -> None:
    format_node(node(tmp_path), "--initial-controllers", VOTERS)
    assert meta(tmp_path / "a").directory_id == uuid_from_text(DIRECTORIES[2])
    snapshot = first_snapshot(tmp_path / "a")
    assert snapshot.voters is not None
    assert [voter.voter_id for voter in snapshot.voters.voters] == [1, 2, 3]


def test_without_voters_there_is_no_snapshot(tmp_path: Path) -> None:
    assert "Formatting metadata directory" in format_node(node(tmp_path), "--no-initial-controllers")
    assert not (tmp_path / "a" / "__cluster_metadata-0").exists()
    static = tmp_path / "static"
    static.mkdir()
    path = node(static, controller_quorum_voters="2@127.0.0.1:19093")
    assert "Formatting metadata directory" in format_node(path)


def test_the_release_says_the_first_features(tmp_path: Path) -> None:
    format_node(node(tmp_path), "--standalone", "--release-version", "3.9")
    assert first_levels(tmp_path / "a") == first_levels(tmp_path / "b") == {"metadata.version": 21}
    other = tmp_path / "other"
    other.mkdir()
    format_node(node(other), "-s", "-f", "metadata.version=25", "-f", "transaction.version=0")
    assert first_levels(other / "a") == {"metadata.version": 25, "group.version": 1}
    newest = tmp_path / "newest"
    newest.mkdir()
    format_node(node(newest), "-s")
    assert first_levels(newest / "a")["eligible.leader.replicas.version"] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--standalone, --initial-controllers or --no-initial-controllers"),
        (("--standalone", "--no-initial-controllers"), "exclude each other"),
        (("-s", "-r", "9.9"), "there is no release 9.9"),
        (("-s", "-r", "4.2", "-f", "metadata.version=20"), "--release-version says metadata.version"),
        (("-s", "-f", "nonsense=1"), "nonsense is not supported"),
        (("-s", "-f", "group.version=9"), "group.version has no level 9"),
        (("-s", "-f", "group.version"), "not of the form name=level"),
        (("-s", "-f", "kraft.version=0"), "goes without first voters"),
        (("-N", "-f", "kraft.version=1"), "needs --standalone"),
        (("-I", "1@host:9093"), "not of the form id@host:port:directory-id"),
        (("-I", "1@host:9093:short"), "the directory id"),
        (("-I", f"1@host:9093:{DIRECTORIES[1]},1@host:9094:{DIRECTORIES[2]}"), "names a node twice"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_done(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    assert said in refused(node(tmp_path), *options)
    assert not (tmp_path / "a").exists()


def test_a_broker_alone_is_no_voter(tmp_path: Path) -> None:
    broker = {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:19092"}
    servers = {"controller.quorum.bootstrap.servers": "127.0.0.1:19093"}
    path = node(tmp_path, **{name.replace(".", "_"): value for name, value in (broker | servers).items()})
    assert "--standalone is for a controller" in refused(path, "--standalone")
    format_node(path)


def test_formatted_directories_are_left_alone(tmp_path: Path) -> None:
    path = node(tmp_path)
    format_node(path, "-s")
    before = meta(tmp_path / "a")
    assert f"{tmp_path / 'a'} is already formatted" in refused(path, "-s")
    assert "All of the log directories are already formatted" in format_node(path, "-s", "-g")
    assert meta(tmp_path / "a") == before
    other = "b3RoZXItY2x1c3Rlci1pZA"
    assert f"belongs to cluster {CLUSTER}, not to {other}" in refused(path, "-s", "-g", cluster=other)
    assert "belongs to node 2, this is node 3" in refused(node(tmp_path, node_id="3"), "-s", "-g")


def test_what_was_not_finished_is_formatted_again(tmp_path: Path) -> None:
    path = node(tmp_path)
    format_node(path, "-s")
    (tmp_path / "a" / "meta.properties").unlink()
    said = format_node(path, "-s", "-g")
    assert f"metadata voter directory {tmp_path / 'a'}" in said
    assert str(tmp_path / "b") not in said


def test_info_says_what_directories_are(tmp_path: Path) -> None:
    path = node(tmp_path)
    done = run_command("storage", "info", "-c", str(path))
    assert done.returncode == 1
    assert f"  {tmp_path / 'a'} does not exist\n" in done.stdout
    format_node(path, "-s")
    done = run_command("storage", "info", "-c", str(path))
    assert done.returncode == 0
    assert f"Found log directories:\n  {tmp_path / 'a'}\n  {tmp_path / 'b'}\n" in done.stdout
    assert f"Found metadata: {{cluster.id={CLUSTER}, directory.id=" in done.stdout
    other = tmp_path / "other"
    other.mkdir()
    format_node(node(other), "-s", cluster="b3RoZXItY2x1c3Rlci1pZA")
    (tmp_path / "b" / "meta.properties").write_bytes((other / "b" / "meta.properties").read_bytes())
    done = run_command("storage", "info", "-c", str(path))
    assert done.returncode == 1
    assert "Found problem:\n  Mismatched cluster IDs between storage directories.\n" in done.stdout


def test_ids_are_made(tmp_path: Path) -> None:
    texts = {run_command("storage", "random-uuid").stdout.strip() for _ in range(3)}
    assert len(texts) == 3
    assert all(len(uuid_from_text(text)) == 16 for text in texts)


def test_a_file_that_says_too_little_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("process.roles=controller,broker\nlog.dirs=/nowhere\n")
    assert "does not say node.id" in refused(path, "-s")
    assert "cannot read the configuration file" in refused(tmp_path / "none", "-s")
