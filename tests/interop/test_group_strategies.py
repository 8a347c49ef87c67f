"""Assignment strategies: every stock client that has one divides the partitions as the strategy says.

A member's place in a strategy's order follows from its member id, which begins with the client id.
"""

from collections.abc import Callable

import pytest

from tests.support.group_members import PYTHON_MEMBERS, Crew, JavaMember, Member
from tests.support.group_views import GroupView
from tests.support.target import Target, unique_name


def start(crew: Crew, client: str, group: str, topic: str, names: str, strategy: str) -> list[Member]:
    return [crew.start(client, group, topic, name, strategy=strategy) for name in names.split()]


def range_gives_each_its_neighbours(crew: Crew, client: str) -> None:
    topic, group = crew.target.create_topic(partitions=6), unique_name("group")
    view = GroupView(crew.target, group, {topic: 6})
    members = start(crew, client, group, topic, "c1 c2 c3", "range")
    assert view.await_settled(members, "range") == {"c1": [0, 1], "c2": [2, 3], "c3": [4, 5]}
    members.pop().close()
    assert view.await_settled(members, "range") == {"c1": [0, 1, 2], "c2": [3, 4, 5]}


def round_robin_deals_partitions_out_in_turn(crew: Crew, client: str) -> None:
    topic, group = crew.target.create_topic(partitions=7), unique_name("group")
    view = GroupView(crew.target, group, {topic: 7})
    members = start(crew, client, group, topic, "c1 c2 c3", "roundrobin")
    assert view.await_settled(members, "roundrobin") == {"c1": [0, 3, 6], "c2": [1, 4], "c3": [2, 5]}
    members.pop().close()
    assert view.await_settled(members, "roundrobin") == {"c1": [0, 2, 4, 6], "c2": [1, 3, 5]}


def sticky_leaves_partitions_where_they_are(crew: Crew, client: str) -> None:
    topic, group = crew.target.create_topic(partitions=6), unique_name("group")
    view = GroupView(crew.target, group, {topic: 6})
    one, two = start(crew, client, group, topic, "c1 c2", "sticky")
    before = view.await_settled([one, two], "sticky")
    assert sorted(len(partitions) for partitions in before.values()) == [3, 3]
    three = crew.start(client, group, topic, "c3", strategy="sticky")
    after = view.await_settled([one, two, three], "sticky")
    assert [len(after[name]) for name in ("c1", "c2", "c3")] == [2, 2, 2]
    for name in ("c1", "c2"):
        assert set(after[name]) < set(before[name])
    two.close()
    last = view.await_settled([one, three], "sticky")
    for name in ("c1", "c3"):
        assert set(after[name]) < set(last[name])


def cooperative_members_keep_what_stays(crew: Crew, client: str) -> None:
    topic, group = crew.target.create_topic(partitions=6), unique_name("group")
    view = GroupView(crew.target, group, {topic: 6})
    one, two = start(crew, client, group, topic, "c1 c2", "cooperative-sticky")
    before = view.await_settled([one, two], "cooperative-sticky")
    assert sorted(len(partitions) for partitions in before.values()) == [3, 3]
    seen = {member.name: len(member.changes) for member in (one, two)}

    three = crew.start(client, group, topic, "c3", strategy="cooperative-sticky")
    after = view.await_settled([one, two, three], "cooperative-sticky")
    assert [len(after[name]) for name in ("c1", "c2", "c3")] == [2, 2, 2]
    for member in (one, two):
        lost = {(topic, number) for number in set(before[member.name]) - set(after[member.name])}
        revoked = [it for it in member.changes[seen[member.name] :] if it.kind == "revoked" and it.partitions]
        # Only what moves is taken away; the other two were never out of its hands.
        assert [change.partitions for change in revoked] == [lost]
        assert len(lost) == 1
    two.close()
    last = view.await_settled([one, three], "cooperative-sticky")
    for name in ("c1", "c3"):
        assert set(after[name]) < set(last[name])


STRATEGIES: dict[str, Callable[[Crew, str], None]] = {
    "range": range_gives_each_its_neighbours,
    "roundrobin": round_robin_deals_partitions_out_in_turn,
    "sticky": sticky_leaves_partitions_where_they_are,
    "cooperative-sticky": cooperative_members_keep_what_stays,
}


@pytest.mark.parametrize(
    ("client", "strategy"),
    [(client, strategy) for client, kind in PYTHON_MEMBERS.items() for strategy in kind.strategies],
)
def test_the_strategies_of_the_python_clients(crew: Crew, client: str, strategy: str) -> None:
    STRATEGIES[strategy](crew, client)


@pytest.mark.peer
@pytest.mark.parametrize("strategy", JavaMember.strategies)
def test_the_strategies_of_the_java_consumer(mainstem_crew: Crew, strategy: str) -> None:
    STRATEGIES[strategy](mainstem_crew, "java")


def test_more_consumers_than_partitions_leave_the_rest_idle(target: Target, crew: Crew) -> None:
    topic, group = target.create_topic(partitions=10), unique_name("group")
    clients = ("confluent-kafka", "kafka-python", "aiokafka")
    members = [
        crew.start(clients[number % 3], group, topic, f"c{number:02}", strategy="range")
        for number in range(15)
    ]
    owned = GroupView(target, group, {topic: 10}).await_settled(members, "range")
    assert owned == {f"c{number:02}": [number] if number < 10 else [] for number in range(15)}
