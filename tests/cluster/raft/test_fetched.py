"""What a leader sends is looked at before it is appended: bytes from the network are hostile until parsed."""

from collections.abc import Callable

import pytest

from mainstem.cluster.batches import data_batch
from mainstem.cluster.raft import effects, events
from mainstem.cluster.raft.control_records import KRaftVersionRecord, control_batch
from mainstem.protocol.apis import k01_fetch as k01
from mainstem.records.batch import set_crc
from tests.cluster.raft.nodes import Node, World, cluster, replicated

Change = Callable[[bytearray], bytes | bytearray]


def _following() -> tuple[World, Node, effects.Send]:
    """A follower whose fetch has just left."""
    world = cluster(1, 2, 3)
    world.until(world.has_leader)
    replicated(world)
    world.run(50)
    node = next(each for each in world.alive() if not each.raft.is_leader)
    sent = [each for each in node.of(effects.Send) if isinstance(each, effects.Send)][-1]
    assert isinstance(sent.request, k01.FetchRequest)
    return world, node, sent


def _batch(node: Node, value: bytes = b"v", after: int = 0, epoch: int | None = None) -> bytearray:
    epoch = node.raft.epoch if epoch is None else epoch
    return data_batch([value], base_offset=node.disk.log.end_offset + after, epoch=epoch, timestamp_ms=0)


def _receive(node: Node, sent: effects.Send, records: bytes | bytearray, **fields: object) -> None:
    partition = k01.PartitionData(
        high_watermark=node.committed,
        current_leader=k01.LeaderIdAndEpoch(node.raft.leader_id, node.raft.epoch),
        records=bytes(records),
    )
    for name, value in fields.items():
        setattr(partition, name, value)
    topic = k01.FetchableTopicResponse("__cluster_metadata", partitions=[partition])
    response = k01.FetchResponse(responses=[topic])
    node.tell(events.Answered(sent.destination, sent.request, response))


def _flip(batch: bytearray) -> bytearray:
    batch[-1] ^= 1
    return batch


def _broken_control(batch: bytearray) -> bytearray:
    batch[-6] ^= 0x55
    set_crc(batch)
    return batch


@pytest.mark.parametrize(
    "make",
    [
        lambda node: _flip(_batch(node)),
        lambda node: _batch(node, after=1),
        lambda node: _batch(node, after=-1),
        lambda node: _batch(node, epoch=node.raft.epoch + 1),
        lambda node: _batch(node, epoch=0),
        lambda node: _batch(node)[:30],
        lambda node: _batch(node)[:-1],
        lambda node: b"\xff" * 200,
        lambda node: _broken_control(
            control_batch(
                [KRaftVersionRecord(k_raft_version=1)],
                base_offset=node.disk.log.end_offset,
                epoch=node.raft.epoch,
                timestamp_ms=0,
            )
        ),
    ],
    ids=["crc", "hole", "again", "later-epoch", "earlier-epoch", "torn-header", "torn", "noise", "control"],
)
def test_bytes_that_are_not_the_next_records_are_not_appended(
    make: Callable[[Node], bytes | bytearray],
) -> None:
    world, node, sent = _following()
    before = list(node.disk.log.batches)
    _receive(node, sent, make(node))
    assert node.disk.log.batches == before
    # It goes on: the real leader has better ones.
    replicated(world)


def test_the_sound_part_before_damage_is_kept() -> None:
    _, node, sent = _following()
    end_offset = node.disk.log.end_offset
    _receive(node, sent, _batch(node) + _flip(_batch(node, after=1)))
    assert node.disk.log.end_offset == end_offset + 1


def test_no_truncation_below_what_is_committed() -> None:
    world, node, sent = _following()
    before = list(node.disk.log.batches)
    _receive(node, sent, b"", diverging_epoch=k01.EpochEndOffset(node.raft.epoch, node.committed - 1))
    assert node.disk.log.batches == before
    replicated(world)


def test_no_snapshot_below_what_is_committed() -> None:
    world, node, sent = _following()
    _receive(node, sent, b"", snapshot_id=k01.SnapshotId(node.committed - 1, 1))
    replicated(world)
    assert node.of(effects.InstallSnapshot) == []


def test_a_high_watermark_beyond_the_own_log_is_not_believed() -> None:
    _, node, sent = _following()
    _receive(node, sent, b"", high_watermark=node.disk.log.end_offset + 100)
    assert node.committed == node.disk.log.end_offset


def test_an_answer_to_what_was_given_up_changes_nothing() -> None:
    world, node, sent = _following()
    world.isolate(node.node_id)
    world.run(world.settings.request_timeout_ms + 100)
    before = list(node.disk.log.batches)
    _receive(node, sent, _batch(node, b"late"))
    assert node.disk.log.batches == before
