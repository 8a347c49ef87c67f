"""The figures of a broker follow what clients do with it. They are read by Prometheus' own Python parser."""

from typing import Any

from mainstem.protocol.apis.k01_fetch import FetchRequest
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.errors import ErrorCode
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    Client,
    Topic,
    ask,
    create_topic,
    eventually,
    fetch,
    fetch_request,
    lose_follower,
    produce,
)
from tests.broker.scraping import scrape
from tests.broker.transactional import Producer

METRICS = {"mainstem.metrics.port": 0}


async def test_requests_are_counted_on_the_short_way_and_on_the_ordinary_one(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    topic = await create_topic(client)
    for _ in range(7):
        await produce(client, topic, b"value")
    await fetch(client, topic)
    figures = await scrape(broker)
    assert figures.one("mainstem_requests_total", api="Produce") == 7
    assert figures.one("mainstem_requests_total", api="Fetch") == 1
    assert figures.one("mainstem_request_duration_seconds_count", api="Produce", waited="false") == 7
    assert figures.one("mainstem_request_duration_seconds_sum", api="Produce", waited="false") > 0
    assert figures.one("mainstem_request_bytes_total", api="Produce") > 7 * 61
    # What was fetched is all that was produced: file ranges count as well.
    assert figures.one("mainstem_response_bytes_total", api="Fetch") > 7 * 61
    assert figures.all("mainstem_errors_total") == []


async def test_a_request_that_waits_is_told_apart(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker(METRICS)
    reader, writer = await connect(broker), await connect(broker)
    topic = await create_topic(writer)
    reader.send(fetch_request({topic: [ask()]}, max_wait_ms=60_000, min_bytes=1))
    await eventually(lambda: any(c.parked for c in broker.node.server.network.connections))
    figures = await scrape(broker)
    assert figures.one("mainstem_requests_waiting") == 1
    assert figures.all("mainstem_request_duration_seconds_count", api="Fetch") == []
    await produce(writer, topic, b"value")
    await reader.receive()
    figures = await scrape(broker)
    assert figures.one("mainstem_requests_waiting") == 0
    assert figures.one("mainstem_request_duration_seconds_count", api="Fetch", waited="true") == 1
    assert figures.one("mainstem_response_bytes_total", api="Fetch") > 61


async def test_errors_are_counted_by_api_and_code(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    topic = await create_topic(client)
    for _ in range(3):
        assert (await fetch(client, topic, offset=99)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    unknown = Topic("nowhere", b"\1" * 16)
    assert (await produce(client, unknown, b"value")).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    answer = await client.call(FetchRequest(session_id=12345, session_epoch=1))
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    figures = await scrape(broker)
    assert figures.one("mainstem_errors_total", api="Fetch", error="OFFSET_OUT_OF_RANGE") == 3
    assert figures.one("mainstem_errors_total", api="Fetch", error="FETCH_SESSION_ID_NOT_FOUND") == 1
    assert figures.one("mainstem_errors_total", api="Produce", error="UNKNOWN_TOPIC_ID") == 1


async def test_a_frame_of_no_api_costs_its_connection_and_makes_no_series(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    client.writer.write(b"\0\0\0\x08\x7f\x00\0\0\0\0\0\1")
    assert await client.is_closed_by_broker()
    figures = await scrape(broker)
    assert figures.one("mainstem_connections_failed_total") == 1
    asked_by_the_node_itself = figures.all("mainstem_requests_total", api="ApiVersions")
    assert figures.all("mainstem_requests_total") == asked_by_the_node_itself


async def test_topics_and_partitions_have_their_figures_over_rolled_segments(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    topic = await create_topic(client, partitions=2, configs={"segment.bytes": "1048576"})
    sizes = []
    for _ in range(3):
        await produce(client, topic, b"x" * 900_000, b"y")
        sizes.append(broker.node.replicas.by_topic(topic.name, 0).log.segments.active.size)
    await produce(client, topic, b"other", partition=1)
    fetched: Any = (await fetch(client, topic, partition_max_bytes=1 << 30, max_bytes=1 << 30)).records
    figures = await scrape(broker)
    other_bytes = figures.one("mainstem_partition_size_bytes", topic=topic.name, partition="1")
    assert figures.one("mainstem_partition_size_bytes", topic=topic.name, partition="0") == sum(sizes)
    assert figures.one("mainstem_partition_segments", topic=topic.name, partition="0") == 3
    assert figures.one("mainstem_partition_log_end_offset", topic=topic.name, partition="0") == 6
    assert figures.one("mainstem_topic_messages_in_total", topic=topic.name) == 7
    assert figures.one("mainstem_topic_bytes_in_total", topic=topic.name) == sum(sizes) + other_bytes
    assert figures.one("mainstem_topic_bytes_out_total", topic=topic.name) == len(fetched)
    assert figures.one("mainstem_partitions") == 2
    await broker.close()
    again = await make_broker(METRICS, data_dir=broker.data_dir)
    figures = await scrape(again)
    assert figures.one("mainstem_topic_messages_in_total", topic=topic.name) == 7
    assert figures.one("mainstem_topic_bytes_in_total", topic=topic.name) == 0


async def test_the_lag_of_a_group_is_there_for_each_partition(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    topic = await create_topic(client, partitions=2)
    await produce(client, topic, *[b"v"] * 10)
    await client.call(FindCoordinatorRequest("g"), 3)
    group = 'quoted " group\n'
    places = [OffsetCommitRequestPartition(index, offset) for index, offset in enumerate((4, 0))]
    topics = [OffsetCommitRequestTopic(topic.name, partitions=places)]
    answer = await client.call(OffsetCommitRequest(group, topics=topics), 9)
    assert answer.topics[0].partitions[0].error_code == 0
    figures = await scrape(broker)
    assert figures.one("mainstem_group_lag_records", group=group, topic=topic.name, partition="0") == 6
    assert figures.one("mainstem_group_lag_records", group=group, topic=topic.name, partition="1") == 0
    assert figures.one("mainstem_groups") == 1
    assert figures.one("mainstem_group_members", group=group) == 0
    assert figures.one("mainstem_group_rebalances_total", group=group) == 0


async def test_an_open_transaction_shows_until_it_ends(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    topic = await create_topic(client)
    producer = await Producer(client, "t").init()
    await producer.send(topic, b"a", b"b")
    figures = await scrape(broker)
    assert figures.one("mainstem_transactions_open") == 1
    assert figures.one("mainstem_partition_unstable_records", topic=topic.name) == 2
    assert await producer.end(commit=False) == ErrorCode.NONE
    await _until_ended(client, producer)
    figures = await scrape(broker)
    assert figures.one("mainstem_transactions_open") == 0
    assert figures.one("mainstem_transaction_oldest_age_seconds") == 0
    assert figures.all("mainstem_partition_unstable_records") == []
    assert figures.one("mainstem_transactions_ended_total", outcome="aborted") == 1
    assert figures.one("mainstem_transactions_ended_total", outcome="committed") == 0


async def _until_ended(client: Client, producer: Producer) -> None:
    while (await producer.describe()).transaction_state not in ("CompleteAbort", "CompleteCommit"):
        pass


async def test_every_fsync_is_timed(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    topic = await create_topic(client, configs={"flush.messages": "1"})
    for _ in range(3):
        await produce(client, topic, b"value")
    figures = await scrape(broker)
    assert figures.one("mainstem_fsync_seconds_count") >= 3
    assert figures.one("mainstem_fsync_seconds_sum") > 0
    assert figures.one("mainstem_request_duration_seconds_count", api="Produce", waited="true") == 3


async def test_a_failed_directory_shows(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    await create_topic(client, partitions=3)
    directory = broker.node.log_manager.dirs[0]
    figures = await scrape(broker)
    path = str(directory.path)
    assert figures.one("mainstem_log_dir_online", directory=path) == 1
    assert figures.one("mainstem_log_dir_total_bytes", directory=path) > 0
    assert figures.one("mainstem_log_dir_free_bytes", directory=path) > 0
    directory.health.fail("the disk is on fire")
    figures = await scrape(broker)
    assert figures.one("mainstem_log_dir_online", directory=path) == 0
    assert figures.one("mainstem_partitions_offline") == 3


async def test_partitions_with_too_few_replicas_in_sync_are_counted(
    make_broker: MakeBroker, connect: Connect
) -> None:
    """As UnderMinIsr and AtMinIsr of Apache Kafka, which ask for no more replicas than there are."""
    broker = await make_broker(METRICS)
    client = await connect(broker)
    topic = await create_topic(client, configs={"min.insync.replicas": "3"})
    figures = await scrape(broker)
    assert figures.one("mainstem_partitions_under_min_isr") == 0
    assert figures.one("mainstem_partitions_at_min_isr") == 1
    assert figures.one("mainstem_cluster_partitions_under_min_isr") == 0
    await lose_follower(broker, topic)
    figures = await scrape(broker)
    assert figures.one("mainstem_partitions_under_min_isr") == 1
    assert figures.one("mainstem_partitions_at_min_isr") == 0
    assert figures.one("mainstem_cluster_partitions_under_min_isr") == 1


async def test_the_process_and_the_event_loop_have_theirs(make_broker: MakeBroker) -> None:
    broker = await make_broker(METRICS)
    figures = await scrape(broker)
    assert figures.one("process_cpu_seconds_total") > 0
    assert figures.one("process_resident_memory_bytes") > 1_000_000
    assert figures.one("process_open_fds") > 3
    monitor = broker.node.server.monitor
    assert monitor is not None
    await eventually(lambda: monitor.meters.loop_lag.count > 0)
    assert (await scrape(broker)).one("mainstem_event_loop_lag_seconds_count") > 0


async def test_nothing_is_counted_unless_asked_for(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    client = await connect(broker)
    await produce(client, await create_topic(client), b"value")
    node = broker.node
    assert node.server.monitor is None
    assert node.server.network is not None
    assert node.server.network.handle_frame == node.server.dispatcher.handle_frame
    assert node.server.network.end_of_pass.page_reads is None
    assert node.log_manager.environment.fsyncs is None


async def test_names_follow_prometheus_conventions(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    await produce(client, await create_topic(client), b"value")
    for name, family in (await scrape(broker)).families.items():
        assert name.startswith(("mainstem_", "process_"))
        assert family.documentation.endswith((".", "any", "labels"))
        if family.type == "counter":
            assert all(sample.name.endswith("_total") for sample in family.samples), name
        if family.type == "histogram":
            assert name.endswith("_seconds")


async def test_many_small_requests_are_all_counted_though_not_all_are_measured(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    topic = await create_topic(client)
    sent = 0
    for count in (1, 5, 100, 64):
        for _ in range(count):
            await produce(client, topic, b"value")
        sent += count
        figures = await scrape(broker)
        assert figures.one("mainstem_requests_total", api="Produce") == sent
        assert figures.one("mainstem_request_duration_seconds_count", api="Produce") == sent
    before = figures.one("mainstem_request_bytes_total", api="Produce")
    await produce(client, topic, b"x" * 500_000)
    figures = await scrape(broker)
    assert 500_000 < figures.one("mainstem_request_bytes_total", api="Produce") - before < 501_000
