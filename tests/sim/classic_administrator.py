"""An administrator for the simulation of classic groups: commits offsets to a group without being a member,
which makes the group if there is none, and deletes it when it is empty, in the midst of others' turns.
"""

from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.sim.classic_world import GROUP, OTHER_TOPIC, Request, World


class Administrator:
    """Waits for no answer."""

    def __init__(self, world: World) -> None:
        self._world = world

    def step(self) -> None:
        is_there = GROUP in self._world.broker.machine.state.groups
        if self._world.happens(0.1 if is_there else 0.8):
            self._commit()
        if self._world.happens(0.05):
            self._delete_group()

    def _commit(self) -> None:
        place = [OffsetCommitRequestPartition(0, self._world.random.randrange(100))]
        request = OffsetCommitRequest(
            GROUP, -1, "", topics=[OffsetCommitRequestTopic(OTHER_TOPIC, bytes(16), place)]
        )
        self._world.send(
            Request(self._world, "administrator's commit", "", "", -1),
            lambda m, token, now: m.offsets.commit(request, 9, token, now),
        )

    def _delete_group(self) -> None:
        self._world.send(
            Request(self._world, "deletion", "", "", -1),
            lambda m, token, now: m.offsets.delete_group(GROUP, token, now),
        )
