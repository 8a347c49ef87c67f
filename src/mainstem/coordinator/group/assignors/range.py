"""The `range` assignor: each topic is cut into consecutive ranges, one for each of its subscribers.

The ranges follow the order of the members, so topics with equally many partitions and the same subscribers
are co-partitioned: partition 3 of both goes to one member. What is owned now plays no part. The order is what
keeps an assignment stable: static members come first, by the instance id that survives a restart.
"""

from mainstem.coordinator.group.assignors.spec import Assignment, GroupSpec


def assign_range(spec: GroupSpec) -> Assignment:
    members = spec.members
    order = sorted(members, key=lambda member_id: _rank(members[member_id].instance_id, member_id))
    target: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in order}
    subscribers: dict[bytes, list[str]] = {}
    if spec.homogeneous:
        subscribers = dict.fromkeys(members[order[0]].subscribed_topic_ids, order)
    else:
        for member_id in order:
            for topic_id in members[member_id].subscribed_topic_ids:
                subscribers.setdefault(topic_id, []).append(member_id)
    for topic_id, topic_members in subscribers.items():
        size, longer = divmod(spec.partition_counts[topic_id], len(topic_members))
        start = 0
        for index, member_id in enumerate(topic_members):
            end = start + size + (index < longer)
            if start == end:
                break
            target[member_id][topic_id] = set(range(start, end))
            start = end
    return target


def _rank(instance_id: str | None, member_id: str) -> tuple[bool, bytes]:
    # Java compares strings by their UTF-16 code units.
    text = member_id if instance_id is None else instance_id
    return instance_id is None, text.encode("utf-16-be", "surrogatepass")
