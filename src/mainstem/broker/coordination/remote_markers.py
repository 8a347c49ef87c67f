"""The markers of transactions on their way to the brokers that lead their partitions (WriteTxnMarkers)."""

from collections.abc import Callable

from mainstem.broker.coordination.broker_questions import BrokerQuestions, Question
from mainstem.broker.coordination.markers import Done, Marker
from mainstem.protocol.apis.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition, by_topic
from mainstem.wire.errors import error_code


class _RemoteMarker(Question):
    """A marker for one partition that another broker leads."""

    __slots__ = ("done", "is_due", "marker", "place")

    def __init__(
        self, place: TopicPartition, marker: Marker, is_due: Callable[[TopicPartition], bool], done: Done
    ) -> None:
        super().__init__(subject=marker.producer_id, meaning=marker)
        self.place = place
        self.marker = marker
        self.is_due = is_due
        self.done = done


class RemoteMarkers(BrokerQuestions[_RemoteMarker]):
    """To all brokers."""

    def write(
        self,
        leader_id: int,
        place: TopicPartition,
        marker: Marker,
        is_due: Callable[[TopicPartition], bool],
        done: Done,
    ) -> None:
        """Have a marker written by the partition's leader. Before it is sent, `is_due` is asked once more."""
        self.ask(leader_id, _RemoteMarker(place, marker, is_due, done))

    def _is_for(self, broker_id: int, question: _RemoteMarker) -> bool:
        part = self._server.image.partition(*question.place)
        return part is not None and part.leader == broker_id and question.is_due(question.place)

    def _request(self, questions: list[_RemoteMarker]) -> WriteTxnMarkersRequest:
        places: dict[Marker, list[TopicPartition]] = {}
        for question in questions:
            places.setdefault(question.marker, []).append(question.place)
        return WriteTxnMarkersRequest(
            [
                WritableTxnMarker(
                    marker.producer_id,
                    marker.producer_epoch,
                    marker.commit,
                    [WritableTxnMarkerTopic(*topic) for topic in by_topic(of_marker).items()],
                    marker.coordinator_epoch,
                    marker.transaction_version,
                )
                for marker, of_marker in places.items()
            ]
        )

    def _answer(self, questions: list[_RemoteMarker], response: WriteTxnMarkersResponse) -> None:
        errors = {
            (marker.producer_id, (topic.name, part.partition_index)): part.error_code
            for marker in response.markers
            for topic in marker.topics
            for part in topic.partitions
        }
        for question in questions:
            code = errors.get((question.marker.producer_id, question.place), ErrorCode.UNKNOWN_SERVER_ERROR)
            question.done(question.place, error_code(code))

    def _give_back(self, questions: list[_RemoteMarker]) -> None:
        for question in questions:
            question.done(question.place, ErrorCode.NETWORK_EXCEPTION)
