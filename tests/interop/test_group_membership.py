"""Members that get stuck, members that restart under one name, and a group that changes its strategy."""

import pytest

from tests.support.group_members import PYTHON_MEMBERS, Crew, PolledMember
from tests.support.group_views import GroupView, assert_order, await_messages, counts, fill, until
from tests.support.target import Target, unique_name

PARTITIONS = 4
EVERYTHING = list(range(PARTITIONS))


def stuck_past_its_interval(crew: Crew, client: str, interval_ms: int) -> None:
    """It loses its partitions, and gets them back when it polls again."""
    target = crew.target
    topic, group = target.create_topic(partitions=PARTITIONS), unique_name("group")
    view = GroupView(target, group, {topic: PARTITIONS})
    intervals = {"session_timeout_ms": 6000, "max_poll_interval_ms": interval_ms}
    stuck: PolledMember = crew.start(client, group, topic, "c1", **intervals)
    other = crew.start("confluent-kafka", group, topic, "c2")
    assert view.await_settled([stuck, other]) == {"c1": [0, 1], "c2": [2, 3]}

    stuck.stall()
    until(lambda: other.partitions == EVERYTHING, lambda: f"c2 to own everything, not {other.partitions}")
    assert view.describe().members == {"c2": other.owned}
    fill(target, topic, PARTITIONS, 40)
    await_messages([other], topic, PARTITIONS, 40)

    stuck.resume()
    assert view.await_settled([stuck, other]) == {"c1": [0, 1], "c2": [2, 3]}
    fill(target, topic, PARTITIONS, 40, first=40)
    await_messages([stuck, other], topic, PARTITIONS, 80)
    assert_order(other)


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_a_member_stuck_past_max_poll_interval(crew: Crew, client: str) -> None:
    stuck_past_its_interval(crew, client, 1500)


def test_a_stuck_member_of_librdkafka(mainstem_crew: Crew) -> None:
    """It wants an interval no shorter than the session timeout, which the broker wants at 6 s or more."""
    stuck_past_its_interval(mainstem_crew, "confluent-kafka", 6000)


@pytest.mark.parametrize("client", PYTHON_MEMBERS)
def test_static_members_restart_without_a_rebalance(target: Target, crew: Crew, client: str) -> None:
    topic, group = target.create_topic(partitions=PARTITIONS), unique_name("group")
    view = GroupView(target, group, {topic: PARTITIONS})
    names = {"one": "c1", "two": "c2"}
    members = {
        instance: crew.start(client, group, topic, name, instance_id=instance)
        for instance, name in names.items()
    }
    everyone = list(members.values())
    before = view.await_settled(everyone)
    assert before == {"c1": [0, 1], "c2": [2, 3]}
    written = 0
    for restarted, stays in (("one", "two"), ("two", "one")):  # the leader is one of them
        seen = list(members[stays].changes)
        members[restarted].close()
        members[restarted] = crew.start(client, group, topic, names[restarted], instance_id=restarted)
        everyone.append(members[restarted])
        assert view.await_settled(list(members.values())) == before
        fill(target, topic, PARTITIONS, 20, first=written)
        written += 20
        await_messages(everyone, topic, PARTITIONS, written)
        assert members[stays].changes == seen
    crew.close()
    assert set(counts(everyone).values()) == {1}


def test_a_second_member_of_the_same_name_fences_the_first(target: Target, crew: Crew) -> None:
    topic, group = target.create_topic(partitions=PARTITIONS), unique_name("group")
    view = GroupView(target, group, {topic: PARTITIONS})
    first: PolledMember = crew.start("confluent-kafka", group, topic, "c1", instance_id="one")
    view.await_settled([first])
    second = crew.start("confluent-kafka", group, topic, "c1", instance_id="one")
    assert "FENCED" in str(first.take_failure()).upper()
    assert view.await_settled([second]) == {"c1": EVERYTHING}


@pytest.mark.peer
def test_a_rolling_change_from_eager_to_cooperative(mainstem_crew: Crew) -> None:
    """Only the Java consumer can offer both ways at once, and a group needs that in between."""
    crew, target = mainstem_crew, mainstem_crew.target
    topic, group = target.create_topic(partitions=PARTITIONS), unique_name("group")
    view = GroupView(target, group, {topic: PARTITIONS})
    fill(target, topic, PARTITIONS, 40)

    one = crew.start("confluent-kafka", group, topic, "c1", strategy="range")
    two = crew.start("confluent-kafka", group, topic, "c2", strategy="range")
    everyone = [one, two]
    view.await_settled([one, two], "range")
    both = "cooperative-sticky,range"
    steps = [("java", both, "range"), ("confluent-kafka", "cooperative-sticky", "cooperative-sticky")]
    for number, (client, strategy, chosen) in enumerate([*steps, steps[1]], 3):
        one.close()
        one, two = two, crew.start(client, group, topic, f"c{number}", strategy=strategy)
        everyone.append(two)
        owned = view.await_settled([one, two], chosen)
        assert sorted(map(len, owned.values())) == [2, 2]
        fill(target, topic, PARTITIONS, 40, first=40 * (number - 2))
    await_messages(everyone, topic, PARTITIONS, 160)
