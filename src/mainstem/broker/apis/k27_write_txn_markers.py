"""WriteTxnMarkers (key 27), versions 1 and 2: end a transaction in partitions of this broker.

Coordinators on other brokers send it, and administrators who abort a transaction that its coordinator has
lost sight of. v2 says which version of transactions the marker follows (KIP-1228).
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.markers import Marker, write_marker
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.pending import Pending
from mainstem.broker.turns import Turn
from mainstem.protocol.apis.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker")

logger = logging.getLogger(__name__)


def handle(ctx: RequestContext, request: WriteTxnMarkersRequest) -> Any:
    if not ctx.authorize(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME) and not ctx.authorize(
        Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        return _response(
            {
                entry.producer_id: dict.fromkeys(_places(entry), ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                for entry in request.markers
            }
        )
    return _Writing(ctx, request).write()


class _Writing:
    """All markers of a request; it is answered when each is committed or refused."""

    def __init__(self, ctx: RequestContext, request: WriteTxnMarkersRequest) -> None:
        self._ctx = ctx
        self._results: dict[int, dict[TopicPartition, ErrorCode]] = {}
        self._unwritten = self._each(request)
        self._missing = 1  # itself, until it has written all of them
        self._pending = Pending(ctx, _cannot_fail)

    def write(self) -> Any:
        self._ctx.broker.turns.run([self])
        return self._pending.outcome()

    def _each(self, request: WriteTxnMarkersRequest) -> Iterator[tuple[TopicPartition, Marker]]:
        for entry in request.markers:
            marker = Marker(
                entry.producer_id,
                entry.producer_epoch,
                entry.coordinator_epoch,
                entry.transaction_result,
                entry.transaction_version,
            )
            self._results.setdefault(entry.producer_id, {})
            for place in _places(entry):
                yield place, marker

    def go_on(self, turn: Turn) -> bool:
        broker = self._ctx.broker
        for place, marker in self._unwritten:
            self._missing += 1
            done = self._done_in(self._results[marker.producer_id])
            try:
                write_marker(broker.coordinators, place, marker, done)
            except Exception:
                logger.exception("cannot write a marker into %s-%d", *place)
                done(place, ErrorCode.UNKNOWN_SERVER_ERROR)
            if turn.is_over:
                return True
        self._one_less()
        return False

    def _done_in(
        self, results: dict[TopicPartition, ErrorCode]
    ) -> Callable[[TopicPartition, ErrorCode], None]:
        def done(place: TopicPartition, error: ErrorCode) -> None:
            results[place] = error
            self._one_less()

        return done

    def _one_less(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._pending.reply(_response(self._results))


def _places(entry: WritableTxnMarker) -> list[TopicPartition]:
    """Each once, however often it is named."""
    named = ((topic.name, index) for topic in entry.topics for index in topic.partition_indexes)
    return list(dict.fromkeys(named))


def _response(results: dict[int, dict[TopicPartition, ErrorCode]]) -> WriteTxnMarkersResponse:
    response = WriteTxnMarkersResponse()
    for producer_id, errors in results.items():
        if not errors:
            continue  # Kafka leaves out the markers that go nowhere
        topics: dict[str, WritableTxnMarkerTopicResult] = {}
        for (topic, index), error in errors.items():
            found = topics.setdefault(topic, WritableTxnMarkerTopicResult(name=topic))
            found.partitions.append(WritableTxnMarkerPartitionResult(index, error))
        response.markers.append(WritableTxnMarkerResult(producer_id, list(topics.values())))
    return response


def _cannot_fail(error: ErrorCode) -> Any:
    raise AssertionError(f"the partitions fail, not the request: {error.name}")
