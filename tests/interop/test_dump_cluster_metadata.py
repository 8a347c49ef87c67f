"""Apache Kafka's tool reads the metadata log and snapshots of Mainstem, and Mainstem reads those of Kafka."""

import asyncio
import json
import re
import time
from pathlib import Path

import pytest

from mainstem.broker.metadata.log import MetadataLog
from mainstem.broker.metadata.opening import open_metadata_log
from mainstem.cluster.controller.controller import Controller
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.replay import Replayer
from mainstem.cluster.snapshot import BOOTSTRAP_FILE, SnapshotId, read_snapshot
from mainstem.config import BrokerConfig
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from mainstem.protocol.apis.k67_allocate_producer_ids import AllocateProducerIdsRequest
from mainstem.protocol.uuids import random_uuid, uuid_to_text
from mainstem.storage.files.checkpoints import PARTITION_METADATA
from tests.cluster.cluster_model import CLUSTER_ID, registration
from tests.support.kafka_peer import kafka_tool
from tests.support.target import Target

pytestmark = pytest.mark.peer

FOLDER = "__cluster_metadata-0"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def dump(path: Path) -> list[str]:
    """What the tool says of each record, the type first; every batch must be valid."""
    tool = kafka_tool("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(path))
    text = tool.check()
    assert "isvalid: false" not in text
    assert "Error" not in text
    payloads = re.findall(r"^\| offset: \d+ .*?headerKeys: \[\] (?:payload: )?(.*)$", text, re.M)
    return [f"{json.loads(p)['type']} {p}" if p.startswith("{") else p for p in payloads]


def kinds(path: Path) -> list[str]:
    return [re.split(r"[ :]", line)[0] for line in dump(path)]


def open_log(directory: Path) -> MetadataLog:
    return open_metadata_log(
        directory,
        node_id=1,
        directory_id=random_uuid(),
        cluster_id="cluster",
        config=BrokerConfig(),
        now_ms=now_ms,
        voter_endpoints=[("PLAINTEXT", "127.0.0.1", 9092)],
    )


def test_kafka_prints_the_log_and_the_snapshots(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    controller = Controller(1, BrokerConfig(), random_uuid, lambda: log.pending_image)
    topic = CreatableTopic("t", 2, 1, configs=[CreatableTopicConfig("retention.ms", "5")])

    async def write() -> SnapshotId:
        _, records = controller.register_broker(registration(1), CLUSTER_ID, 0, is_own=True)
        image = log.append(records)
        log.append(controller.create_topics(CreateTopicsRequest([topic]))[1])
        request = AllocateProducerIdsRequest(1, image.brokers[1].epoch)
        log.append(controller.allocate_producer_ids(request)[1])
        await log.idle()
        return await log.take_snapshot()

    identity = asyncio.run(write())
    log.close()

    folder = tmp_path / FOLDER
    features = ["FEATURE_LEVEL_RECORD"] * 3
    assert kinds(tmp_path / BOOTSTRAP_FILE) == ["SnapshotHeader", *features, "SnapshotFooter"]
    quorum = ["SnapshotHeader", "KRaftVersion", "KRaftVoters"]
    assert kinds(folder / SnapshotId(0, 0).file_name) == [*quorum, "SnapshotFooter"]
    made = ["TOPIC_RECORD", "CONFIG_RECORD", "PARTITION_RECORD", "PARTITION_RECORD", "PRODUCER_IDS_RECORD"]
    first = ["LeaderChange", "KRaftVersion", "KRaftVoters", *features, "REGISTER_BROKER_RECORD"]
    assert kinds(folder / "00000000000000000000.log") == [*first, *made]
    assert sorted(kinds(folder / identity.file_name)) == sorted(
        [*quorum, *features, "REGISTER_BROKER_RECORD", *made, "SnapshotFooter"]
    )


def test_mainstem_replays_what_kafka_wrote(kafka: Target) -> None:
    topic = kafka.create_topic(partitions=3, configs={"retention.ms": "12345"})
    folder = kafka.log_dir / FOLDER
    replayer = Replayer(MetadataImage())
    # The peer goes on writing: only what a reader can see whole is replayed.
    for path in sorted(folder.glob("*.log")):
        replayer.replay(_whole_batches(path.read_bytes()))
    image = replayer.image
    assert len(image.topics_by_name[topic].partitions) == 3
    assert image.topic_config(topic) == {"retention.ms": "12345"}
    assert image.features["metadata.version"] == 30
    assert image.brokers[kafka.node_id].active
    partition_metadata = (kafka.log_dir / f"{topic}-0" / PARTITION_METADATA).read_text()
    assert uuid_to_text(image.topics_by_name[topic].topic_id) in partition_metadata
    for path in folder.glob("*.checkpoint"):
        identity = SnapshotId.from_file_name(path.name)
        assert identity is not None
        read_snapshot(path.read_bytes(), identity, "")


def _whole_batches(data: bytes) -> bytes:
    end = 0
    while end + 12 <= len(data):
        size = 12 + int.from_bytes(data[end + 8 : end + 12])
        if end + size > len(data):
            break
        end += size
    return data[:end]
