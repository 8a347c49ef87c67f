"""Decisions of a real broker: many share an fsync, and each is answered when the broker has applied it."""

import asyncio
import errno
import os
import time
from pathlib import Path

from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreateTopicsRequest
from mainstem.protocol.errors import ErrorCode
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, create_topic, produce
from tests.support.failing_files import FailingFiles

CLIENTS = 20
TOPICS_EACH = 10


def _creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name, 1, 1)], timeout_ms=10_000)


async def test_topics_that_many_clients_create_at_once_share_fsyncs(
    make_broker: MakeBroker, connect: Connect
) -> None:
    files = FailingFiles()
    broker = await make_broker(files=files)
    clients = [await connect(broker) for _ in range(CLIENTS)]
    metadata_fsyncs = creating = 0
    unfinished = CLIENTS

    def counted(fd: int) -> None:
        """As slow as it takes for everybody to wait for it, however busy the machine is."""
        nonlocal metadata_fsyncs
        folder, name = os.path.split(os.readlink(f"/proc/self/fd/{fd}"))
        if folder.endswith("__cluster_metadata-0") and name.endswith(".log"):
            metadata_fsyncs += 1
            deadline = time.monotonic() + 10
            while creating < unfinished and time.monotonic() < deadline:
                time.sleep(0.001)
        os.fsync(fd)

    async def create_some(client: Client, number: int) -> None:
        nonlocal creating, unfinished
        for turn in range(TOPICS_EACH):
            creating += 1
            topic = await create_topic(client, f"t-{number}-{turn}")
            creating -= 1
            assert (await produce(client, topic, b"v")).error_code == ErrorCode.NONE, "it is there to be used"
        unfinished -= 1

    with files.exchanged(fsync=counted):
        await asyncio.gather(*(create_some(client, number) for number, client in enumerate(clients)))
    assert len(broker.node.image.topics_by_name) == CLIENTS * TOPICS_EACH
    assert 0 < metadata_fsyncs < CLIENTS * TOPICS_EACH / 2


async def test_decisions_that_come_together_do_not_contradict_each_other(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    clients = [await connect(broker) for _ in range(CLIENTS)]
    answers = await asyncio.gather(*(client.call(_creation("same")) for client in clients))
    codes = sorted(answer.topics[0].error_code for answer in answers)
    assert codes == [ErrorCode.NONE] + [ErrorCode.TOPIC_ALREADY_EXISTS] * (CLIENTS - 1)
    ids = await asyncio.gather(*(broker.node.producer_ids.next() for _ in range(3000)))
    assert len(set(ids)) == 3000


async def test_what_cannot_be_made_durable_is_refused_and_did_not_happen(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    files = FailingFiles()
    broker = await make_broker(
        {"metadata.log.dir": str(tmp_path / "metadata"), "log.dirs": f"{tmp_path / 'a'}"},
        data_dir=tmp_path / "a",
        files=files,
    )
    clients = [await connect(broker) for _ in range(3)]
    await create_topic(clients[0], "before")

    def broken(fd: int) -> None:
        if "__cluster_metadata-0" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EIO, "Input/output error")
        os.fsync(fd)

    with files.exchanged(fsync=broken):
        answers = await asyncio.gather(
            *(client.call(_creation(f"lost-{number}")) for number, client in enumerate(clients))
        )
    answers.append(await clients[0].call(_creation("later")))
    assert {answer.topics[0].error_code for answer in answers} == {ErrorCode.KAFKA_STORAGE_ERROR}
    exists = await clients[0].call(_creation("before"))
    assert exists.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert set(broker.node.image.topics_by_name) == {"before"}
