"""A disk that is full or broken, as clients see it: clear errors, reading goes on, and a way back."""

import errno
import os
import threading

import pytest

from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.apis.k35_describe_log_dirs import DescribeLogDirsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import BrokerError
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import create_topic, fetch, produce, values_of
from tests.support.failing_files import FailingFiles


async def test_a_full_disk_is_a_storage_error_and_passes(make_broker: MakeBroker, connect: Connect) -> None:
    files = FailingFiles()
    client = await connect(await make_broker(files=files))
    topic = await create_topic(client)
    for offset in range(3):  # so that the producer goes the short way
        assert (await produce(client, topic, b"v")).base_offset == offset
    with files.failing("pwrite", error=OSError(errno.ENOSPC, "No space left on device")):
        for _ in range(3):
            refused = await produce(client, topic, b"v")
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert refused.error_message
        assert values_of((await fetch(client, topic)).records) == [b"v"] * 3
    assert (await produce(client, topic, b"v")).base_offset == 3
    assert values_of((await fetch(client, topic)).records) == [b"v"] * 4


async def test_a_directory_that_went_offline_is_told_to_everybody(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = await create_topic(client)
    await produce(client, topic, b"v")
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic.name)])
    assert (await client.call(request)).topics[0].partitions[0].offline_replicas == []
    broker.node.log_manager.dirs[0].health.fail("the disk is on fire")
    assert (await client.call(request)).topics[0].partitions[0].offline_replicas == [1]
    assert (await produce(client, topic, b"v")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (await fetch(client, topic)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    (directory,) = (await client.call(DescribeLogDirsRequest(topics=None))).results
    assert directory.error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_an_fsync_that_fails_answers_its_waiters_and_takes_the_directory_offline(
    make_broker: MakeBroker, connect: Connect
) -> None:
    files = FailingFiles()
    broker = await make_broker(files=files)
    client = await connect(broker)
    topic = await create_topic(client, configs={"flush.messages": "1"})
    with files.failing("fsync", error=OSError(errno.EIO, "Input/output error")):
        refused = await produce(client, topic, b"v")
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (await produce(client, topic, b"v")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.node.log_manager.dirs[0].health.failure is not None
    await broker.restart()
    client = await connect(broker)
    assert (await produce(client, topic, b"back")).error_code == 0


async def test_a_disk_that_fails_during_the_start_ends_it_with_the_reason(
    make_broker: MakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    def broken_in_threads(fd: int) -> None:  # the broker registers when the loop runs; what is before is not
        if threading.current_thread() is not threading.main_thread():
            raise OSError(errno.EIO, "Input/output error")
        os.fsync(fd)

    files = FailingFiles()
    broker = await make_broker(files=files)
    await broker.stop()
    refusal = pytest.raises(BrokerError, match="cannot write the metadata log: fsync")
    with files.exchanged(fsync=broken_in_threads), refusal:
        await broker.start()
    assert "no log directory is left" in caplog.text
    assert "Exception in callback" not in caplog.text
    await broker.start()
