"""Takes to the controller who is in sync: one AlterPartition request at a time, with all that was proposed
while the one before was under way.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from mainstem.broker.logs.partition import Partition
from mainstem.logs import about
from mainstem.protocol.apis.k56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.replication.leader_state import Proposal

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

_PARTITIONS_PER_REQUEST_MAX: Final = 5_000
_PAUSE_SECONDS: Final = 0.05
_PAUSE_SECONDS_MAX: Final = 1.0
# So long after the controller would not take a replica it is looked at again.
_REVIEW_SECONDS: Final = 0.5

# The controller knows this epoch of the partition, and has not done what was proposed.
_NOT_DONE: Final = frozenset((ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED))
# The metadata here are behind the controller's: what comes next of them decides.
_DECIDED_ELSEWHERE: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    )
)

Key = tuple[bytes, int]


class IsrProposals:
    """What was proposed and is not answered yet. A partition has one proposal at most."""

    def __init__(self, server: "SharedServer") -> None:
        self._server = server
        self._waiting: dict[Key, tuple[Partition, Proposal]] = {}
        self._under_way: asyncio.Task[None] | None = None

    def add(self, partition: Partition, proposal: Proposal) -> None:
        """Sent at the end of this turn, with what else is proposed in it."""
        self._waiting[partition.topic_id, partition.index] = partition, proposal
        if self._under_way is None:
            self._under_way = self._server.loop.create_task(self._send_all())

    async def stop(self) -> None:
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.gather(self._under_way, return_exceptions=True)

    async def _send_all(self) -> None:
        pause_seconds = _PAUSE_SECONDS
        try:
            while self._waiting:
                sent = dict(list(self._waiting.items())[:_PARTITIONS_PER_REQUEST_MAX])
                for key in sent:
                    del self._waiting[key]
                if await self._send(sent):
                    pause_seconds = _PAUSE_SECONDS
                else:
                    await asyncio.sleep(pause_seconds)
                    pause_seconds = min(_PAUSE_SECONDS_MAX, 2 * pause_seconds)
        finally:
            self._under_way = None

    async def _send(self, sent: dict[Key, tuple[Partition, Proposal]]) -> bool:
        """False when some of it has to be sent again after a pause."""
        try:
            response = await self._server.controller.alter_partition(self._request(sent))
            if response.error_code != ErrorCode.NONE:
                raise KafkaError(ErrorCode(response.error_code))
        except KafkaError as error:
            logger.warning(
                "the controller could not be told who is in sync in %d partitions; it is tried again: %s",
                len(sent), error.message or error.code.message,
            )  # fmt: skip
            self._send_again(sent)
            return False
        except Exception:
            logger.exception("the controller could not be told who is in sync; it is tried again")
            self._send_again(sent)
            return False
        return self._take(response, sent)

    def _request(self, sent: dict[Key, tuple[Partition, Proposal]]) -> AlterPartitionRequest:
        node_id = self._server.node_id
        own_epoch = self._server.image.brokers[node_id].epoch
        topics: dict[bytes, TopicData] = {}
        for (topic_id, index), (_, proposal) in sent.items():
            topic = topics.setdefault(topic_id, TopicData(topic_id, []))
            topic.partitions.append(
                PartitionData(
                    partition_index=index,
                    leader_epoch=proposal.leader_epoch,
                    new_isr=list(proposal.isr),
                    new_isr_with_epochs=[
                        BrokerState(broker_id, own_epoch if broker_id == node_id else epoch)
                        for broker_id, epoch in proposal.members
                    ],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(node_id, own_epoch, list(topics.values()))

    def _take(self, response: AlterPartitionResponse, sent: dict[Key, tuple[Partition, Proposal]]) -> bool:
        for topic in response.topics:
            for data in topic.partitions:
                found = sent.get((topic.topic_id, data.partition_index))
                if found is not None and self._answer(*found, data):
                    del sent[topic.topic_id, data.partition_index]
        self._send_again(sent)
        return not sent

    def _answer(self, partition: Partition, proposal: Proposal, data: ResponsePartitionData) -> bool:
        """Whether this proposal has its answer; one without is sent again."""
        code = data.error_code
        if code == ErrorCode.NONE:
            partition.isr_accepted(proposal, data.leader_epoch, data.partition_epoch, tuple(data.isr))
        elif code in _NOT_DONE:
            logger.info("%s: %s cannot be in sync now", partition, list(proposal.isr), extra=about(partition))
            partition.isr_refused(proposal)
            self._server.loop.call_later(_REVIEW_SECONDS, self._review, partition)
        else:
            return code in _DECIDED_ELSEWHERE
        return True

    def _review(self, partition: Partition) -> None:
        partition.review_replicas(self._server.clock.now_ms())

    def _send_again(self, sent: dict[Key, tuple[Partition, Proposal]]) -> None:
        """What nobody has decided, unless something else holds by now."""
        for key, (partition, proposal) in sent.items():
            if key not in self._waiting and partition.has_proposed(proposal):
                self._waiting[key] = partition, proposal
