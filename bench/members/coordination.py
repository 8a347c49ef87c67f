"""Around the members: finds coordinators and sets groups up before a phase, removes them afterwards."""

import time

from bench.errors import BenchError
from bench.members.driver import ask
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k42_delete_groups import DeleteGroupsRequest
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.errors import ErrorCode

_FIND_COORDINATOR_VERSION = 4
_OFFSET_COMMIT_VERSION = 9
_DELETE_GROUPS_VERSION = 2
_ALTER_CONFIGS_VERSION = 1
_GROUP_RESOURCE = 32
_SET = 0
# A coordinator that is about to be there.
NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


def wait_for_coordinators(port: int, groups: list[str], timeout_s: float = 60.0) -> None:
    """Until every group has a coordinator that answers. The first one makes `__consumer_offsets`."""
    deadline = time.monotonic() + timeout_s
    for first in range(0, len(groups), 100):
        some = groups[first : first + 100]
        while not _have_coordinators(port, some):
            _pause(deadline, "finding the coordinators")


def _have_coordinators(port: int, groups: list[str]) -> bool:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=groups)
    found = ask(port, request, _FIND_COORDINATOR_VERSION).coordinators
    for coordinator in found:
        if coordinator.error_code and coordinator.error_code not in NOT_YET:
            raise BenchError(f"no coordinator for {coordinator.key}: error code {coordinator.error_code}")
    return not any(coordinator.error_code for coordinator in found)


def commit_once(port: int, group: str, topic: str, timeout_s: float = 60.0) -> None:
    """Until the group has taken a commit: from then on its coordinator answers at once."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    request = OffsetCommitRequest(group_id=group, topics=topics)
    deadline = time.monotonic() + timeout_s
    while True:
        error = ask(port, request, _OFFSET_COMMIT_VERSION).topics[0].partitions[0].error_code
        if not error:
            return
        if error not in NOT_YET:
            raise BenchError(f"a commit to {group} was answered with error code {error}")
        _pause(deadline, f"a commit to {group}")


def set_group_config(port: int, group: str, name: str, value: str) -> None:
    setting = AlterableConfig(name=name, config_operation=_SET, value=value)
    resource = AlterConfigsResource(resource_type=_GROUP_RESOURCE, resource_name=group, configs=[setting])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = ask(port, request, _ALTER_CONFIGS_VERSION).responses
    if answer.error_code:
        raise BenchError(f"cannot set {name} of {group}: {answer.error_message}")


def delete_groups(port: int, groups: list[str]) -> None:
    """Groups without members, with their offsets; one that is gone already is no error."""
    for first in range(0, len(groups), 100):
        request = DeleteGroupsRequest(groups_names=groups[first : first + 100])
        for result in ask(port, request, _DELETE_GROUPS_VERSION).results:
            if result.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                raise BenchError(f"cannot delete {result.group_id}: error code {result.error_code}")


def _pause(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise BenchError(f"{what} takes too long")
    time.sleep(0.05)
