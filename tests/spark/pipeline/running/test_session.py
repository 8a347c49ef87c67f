"""Spark gets settings that suit a pipeline, and what is given comes first; the archive for workers is
complete."""

import sys
import tarfile
from pathlib import Path

import pytest

from mainstem.spark.pipeline import Pipeline, StatefulStep, TopicSink, TopicSource
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.running.package import archive_settings, build_archive
from mainstem.spark.pipeline.running.session import settings, worker_environment


def test_settings() -> None:
    assert settings("local[4]", {})["spark.sql.shuffle.partitions"] == "4"
    assert settings("local[3,2]", {})["spark.sql.shuffle.partitions"] == "3"
    assert settings("local", {})["spark.sql.shuffle.partitions"] == "2"
    assert "spark.sql.shuffle.partitions" not in settings("spark://host:7077", {})
    given = settings("local[4]", {"spark.sql.shuffle.partitions": "9", "spark.ui.enabled": "true"})
    assert (given["spark.sql.shuffle.partitions"], given["spark.ui.enabled"]) == ("9", "true")
    stateful = StatefulStep(source="v", stateful=dict, by=["id"], schema="n INT")
    provider = settings("local[1]", {}, [stateful])["spark.sql.streaming.stateStore.providerClass"]
    assert provider.endswith("RocksDBStateStoreProvider")


def test_workers_use_our_interpreter_unless_another_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert worker_environment(Path("folder"))["PYSPARK_PYTHON"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "python-of-theirs")
    assert worker_environment(Path("folder"))["PYSPARK_PYTHON"] == "python-of-theirs"


def test_where_things_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("MAINSTEM_BOOTSTRAP", raising=False)
    pipeline = Pipeline(
        name="p", sources={"a": TopicSource(topic="a")}, sinks={"b": TopicSink(source="a", topic="b")}
    )
    places = Places(pipeline, tmp_path)
    assert places.bootstrap() == "localhost:9092"
    assert places.bootstrap("own:1") == "own:1"
    assert Places(pipeline, tmp_path, bootstrap="typed:2").bootstrap() == "typed:2"
    assert places.checkpoint == str(tmp_path / "state" / "mainstem" / "pipelines" / "p")
    assert Places(pipeline, tmp_path, checkpoint="cp").checkpoint_of("out") == str(tmp_path / "cp" / "out")
    assert (
        Places(pipeline, tmp_path, checkpoint="s3a://bucket/cp/").checkpoint_of("out")
        == "s3a://bucket/cp/out"
    )
    assert places.group == "p"


@pytest.mark.soak
def test_the_archive_for_workers_holds_our_packages_and_theirs(tmp_path: Path) -> None:
    archive = build_archive(tmp_path)
    with tarfile.open(archive) as found:
        names = set(found.getnames())
    assert {"mainstem/__init__.py", "pyspark_mainstem/__init__.py", "pyarrow/__init__.py"} <= names
    assert not any(name.startswith("pyspark/") for name in names)
    assert build_archive(tmp_path) == archive
    assert archive_settings(archive)["spark.archives"].startswith(str(archive))
