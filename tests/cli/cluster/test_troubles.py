"""What `mainstem cluster status` says is wrong with a cluster, and what to do about it."""

from mainstem.cli.cluster.status import ClusterStatus, Follower, LogDirectory, Node
from mainstem.cli.cluster.troubles import troubles
from mainstem.cli.clusters.partition_health import PartitionHealth

PLACE = ("broker", "controller")


def node(node_id: int, state: str = "up", level: int = 30) -> Node:
    return Node(node_id, PLACE, f"host{node_id}:9092", None, state, level)


def part(number: int, leader: int, isr: list[int], min_isr: int = 2) -> PartitionHealth:
    return PartitionHealth("orders", number, leader, [1, 2, 3], isr, min_isr)


def status(**changed: object) -> ClusterStatus:
    whole = ClusterStatus(
        cluster_id="id",
        features={"metadata.version": 30},
        nodes=[node(1), node(2), node(3)],
        leader=1,
        epoch=5,
        high_watermark=100,
        followers=[Follower(number, "voter", 100, 0, 0, 0) for number in (1, 2, 3)],
        partitions=6,
        offline=[],
        under_min_isr=[],
        under_replicated=[],
        elsewhere_led=0,
    )
    return whole._replace(**changed)  # type: ignore[arg-type]


def said(found: ClusterStatus) -> list[str]:
    return [f"{trouble.what} -> {trouble.what_to_do}" for trouble in troubles(found)]


def test_nothing_is_said_of_a_cluster_that_is_well() -> None:
    assert said(status()) == []


def test_a_silent_voter_is_counted_against_the_majority() -> None:
    assert said(status(nodes=[node(1), node(2), node(3, "silent")])) == [
        "node 3 of the quorum's 3 voters is silent: one more loss stops the quorum -> start node 3, and look "
        "at the log there"
    ]
    five = [Follower(number, "voter", 100, 0, 0, 0) for number in range(1, 6)]
    nodes = [node(number, "silent" if number == 5 else "up") for number in range(1, 6)]
    assert "1 more loss can be borne" in said(status(nodes=nodes, followers=five))[0]


def test_each_kind_of_partition_has_its_line() -> None:
    found = said(
        status(
            offline=[part(0, -1, [3])],
            under_min_isr=[part(1, 1, [1])],
            under_replicated=[part(2, 1, [1, 2]), part(3, 1, [1, 2])],
            elsewhere_led=2,
        )
    )
    assert [line.partition(" -> ")[0] for line in found] == [
        "1 partition without a leader: orders-0",
        "1 partition with fewer copies in sync than min.insync.replicas, so that acks=all is refused: "
        "orders-1",
        "2 partitions with copies that are not in sync: orders-2, orders-3",
        "2 partitions not led by the first of its replicas",
    ]
    assert "start nodes 1, 2, 3; with none of them left" in found[0]
    assert "start nodes 2, 3" in found[1]
    assert "see that node 3 is up" in found[2]


def test_long_lists_are_cut() -> None:
    (line,) = said(status(under_replicated=[part(number, 1, [1, 2]) for number in range(9)]))
    assert "orders-0, orders-1, orders-2 and 6 more" in line


def test_a_fenced_broker_that_does_not_vote_may_be_forgotten() -> None:
    (line,) = said(status(nodes=[node(1), node(2), node(3), node(4, "fenced")]))
    assert "broker 4 is fenced" in line
    assert "mainstem cluster unregister --id 4" in line


def test_a_level_that_could_be_raised_is_named() -> None:
    (line,) = said(status(features={"metadata.version": 29}))
    assert "all brokers support metadata.version 30, the cluster still runs at 29" in line
    mixed = status(features={"metadata.version": 29}, nodes=[node(1), node(2, level=29)])
    assert said(mixed) == []


def test_a_voter_whose_disk_was_replaced_is_silent_though_its_node_is_up() -> None:
    followers = [Follower(number, "voter", 100, 0, 0, 0, f"disk{number}") for number in (1, 2)]
    followers += [
        Follower(3, "voter", 90, 10, 9_000, 9_000, "old", "silent"),
        Follower(3, "observer", 100, 0, 0, 0, "new"),
    ]
    assert said(status(followers=followers)) == [
        "node 3 of the quorum's 3 voters is silent: one more loss stops the quorum -> node 3 has a new "
        "directory: `kafka-metadata-quorum remove-controller --controller-id 3 --controller-directory-id "
        "old`, then add-controller there"
    ]


def test_a_quorum_without_a_leader_is_told_with_who_is_missing() -> None:
    lost = status(
        leader=-1, followers=[], nodes=[node(1), node(2, "does not answer"), node(3, "does not answer")]
    )
    assert said(lost) == [
        "nobody leads the quorum: 1 of 3 nodes answers -> start nodes 2, 3, and look at the log there; "
        "controllers that are no brokers may be missing as well"
    ]
    assert "3 of 3 nodes answer -> start the controllers" in said(status(leader=-1, followers=[]))[0]
    (line,) = said(status(leader=-1, followers=[], quorum_refusal="not for you"))
    assert line.startswith("the quorum cannot be seen: not for you -> ask for the right")


def test_a_node_that_hangs_is_told() -> None:
    assert said(status(nodes=[node(1), node(2), node(3, "does not answer")])) == [
        "node 3 does not answer -> see that node 3 can be reached from here; stop and start again what hangs"
    ]


def test_disks_that_are_full_or_gone_are_told() -> None:
    whole, mib = 1 << 40, 1 << 20
    found = said(
        status(
            directories=[
                LogDirectory(1, "/a", False, whole, 63 * mib),
                LogDirectory(1, "/b", False, whole, 65 * mib),
                LogDirectory(2, "/c", True, -1, -1),
                LogDirectory(3, "/d", False, -1, -1),
                LogDirectory(3, "/e", False, 20 * mib, mib),
            ]
        )
    )
    assert [line.partition(" -> ")[0] for line in found] == [
        "no room left on node 1: 63.0 MiB in /a",
        "node 2 has lost log directory /c",
    ]
