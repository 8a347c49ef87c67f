"""The life of a transaction, cut off after each record: what a coordinator that starts there does, and what
its producer is told when it asks again.
"""

from typing import Any

import pytest

from mainstem.config import BrokerConfig
from mainstem.coordinator.transaction.completion import MarkersDue
from mainstem.coordinator.transaction.coordinator import TransactionCoordinator
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.apis.k26_end_txn import EndTxnRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from tests.coordinator.harness import FakeTopics, Harness

_ID, _PRODUCER = "shop", 1000
_PLACES = [("t", 0), ("t", 1)]


class _Markers:
    """Keeps what is due."""

    def __init__(self) -> None:
        self.due: list[MarkersDue] = []

    def reply(self, response: Any) -> None:
        self.due.append(response)

    def fail(self, error: ErrorCode) -> None:
        raise AssertionError(error)


def _harness(markers: _Markers) -> Harness:
    topics = FakeTopics(t=2)
    return Harness(lambda: TransactionCoordinator(BrokerConfig({}), topics, 0, markers))


def _add(harness: Harness, place: TopicPartition, version: int) -> None:
    harness.send(
        lambda m, token, now: m.add_partitions(_ID, _PRODUCER, 0, [place], False, version, token, now)
    )


def _end(harness: Harness, epoch: int, commit: bool, version: int) -> Any:
    request = EndTxnRequest(_ID, _PRODUCER, epoch, commit)
    return harness.send(lambda m, token, now: m.end_txn(request, version, token, now)).answer


def _write_markers(harness: Harness, due: MarkersDue) -> None:
    harness.send(lambda m, token, now: m.markers_written(due, due.partitions, now))


def _whole_life(commit: bool, version: int) -> list[tuple[bytes, bytes | None]]:
    """Initialised, one partition, another one, decided, complete."""
    markers = _Markers()
    harness = _harness(markers)
    request = InitProducerIdRequest(_ID, 60_000)
    harness.send(lambda m, token, now: m.init_producer_id(request, 5, _PRODUCER, token, now))
    for place in _PLACES:
        _add(harness, place, 2 if version == 5 else 0)
    _end(harness, 0, commit, version)
    _write_markers(harness, markers.due[0])
    assert len(harness.log) == 5
    return harness.log


# How many records there are, the state, how many markers are due, what the producer is told when it asks for
# the end again: at once, and when the markers are written.
_TABLE = [
    (0, "", 0, "INVALID_PRODUCER_ID_MAPPING", ""),
    (1, "Empty", 0, "INVALID_TXN_STATE", ""),
    (2, "Ongoing", 1, "NONE", "NONE"),
    (3, "Ongoing", 2, "NONE", "NONE"),
    (4, "Prepare", 2, "CONCURRENT_TRANSACTIONS", "NONE"),
    (5, "Complete", 0, "NONE", ""),
]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize(("records", "state", "due", "at_once", "afterwards"), _TABLE)
def test_what_follows_a_restart(
    records: int, state: str, due: int, at_once: str, afterwards: str, commit: bool, version: int
) -> None:
    markers = _Markers()
    harness = _harness(markers)
    harness.log = _whole_life(commit, version)[:records]
    harness.restart()
    assert harness.machine.describe(_ID).transaction_state.startswith(state)
    if records == 1 and not commit and version == 5:
        at_once = "NONE"  # of the newer protocol, one that never began can be aborted
    assert ErrorCode(_end(harness, 0, commit, version).error_code).name == at_once
    assert [len(one.partitions) for one in markers.due] == ([due] if due else [])
    for one in markers.due:
        assert one.commit is commit
        assert one.producer_epoch == (1 if version == 5 else 0)
        _write_markers(harness, one)
    if afterwards:
        again = _end(harness, 0, commit, version)
        assert ErrorCode(again.error_code).name == afterwards
        assert again.producer_epoch == (1 if version == 5 else -1)
        outcome = "CompleteCommit" if commit else "CompleteAbort"
        assert harness.machine.describe(_ID).transaction_state == outcome
