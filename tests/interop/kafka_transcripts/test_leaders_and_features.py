"""ElectLeaders, reassignments, UpdateFeatures and UnregisterBroker, as a node alone answers them."""

import pytest

from mainstem.protocol.apis.k43_elect_leaders import ElectLeadersRequest, TopicPartitions
from mainstem.protocol.apis.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mainstem.protocol.apis.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from mainstem.protocol.apis.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from mainstem.protocol.apis.k64_unregister_broker import UnregisterBrokerRequest
from tests.support.target import Target
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@pytest.mark.parametrize("version", range(3))
def test_leaders_that_nobody_needs(target: Target, version: int) -> None:
    transcript = Transcript(target, f"elect_leaders_v{version}")
    topic = transcript.stand_in(target.create_topic(partitions=2), "topic")
    with WireClient(target) as client:
        for title, wishes in (
            ("one partition", [TopicPartitions(topic, [0])]),
            ("both, and one that there is not", [TopicPartitions(topic, [0, 1, 2])]),
            ("an unknown topic", [TopicPartitions("no-such-topic", [0])]),
            ("nothing", []),
        ):
            for kind in (0, 1) if version else (0,):
                answer = client.call(ElectLeadersRequest(kind, wishes), version)
                transcript.note(f"{title}, type {kind}", answer)
        if version:
            transcript.note(
                "type 7", client.call(ElectLeadersRequest(7, [TopicPartitions(topic, [0])]), version)
            )
    transcript.check()


@pytest.mark.parametrize("version", range(2))
def test_reassignments_on_one_broker(target: Target, version: int) -> None:
    transcript = Transcript(target, f"reassignments_v{version}")
    topic = transcript.stand_in(target.create_topic(), "topic")
    own = target.node_id
    with WireClient(target) as client:
        for title, name, number, replicas in (
            ("the same replicas", topic, 0, [own]),
            ("nothing to take back", topic, 0, None),
            ("no replicas", topic, 0, []),
            ("a replica twice", topic, 0, [own, own]),
            ("an unknown broker", topic, 0, [own, 99]),
            ("an unknown partition", topic, 5, [own]),
            ("an unknown topic", "no-such-topic", 0, [own]),
        ):
            wish = ReassignableTopic(name, [ReassignablePartition(number, replicas)])
            transcript.note(title, client.call(AlterPartitionReassignmentsRequest(topics=[wish]), version))
        for title, topics in (
            ("all that is under way", None),
            ("of the topic", [ListPartitionReassignmentsTopics(topic, [0, 1])]),
            ("of an unknown one", [ListPartitionReassignmentsTopics("no-such-topic", [0])]),
        ):
            transcript.note(title, client.call(ListPartitionReassignmentsRequest(topics=topics)))
    transcript.check()


@pytest.mark.parametrize("version", range(3))
def test_features_that_stay_as_they_are(target: Target, version: int) -> None:
    transcript = Transcript(target, f"update_features_v{version}")
    with WireClient(target) as client:
        for title, name, level, kind in (
            ("the level that is there", "group.version", 1, UPGRADE),
            ("one that is not supported", "group.version", 99, UPGRADE),
            ("one below 0", "group.version", -1, UPGRADE),
            ("down, as an upgrade", "group.version", 0, UPGRADE),
            ("up, as a downgrade", "transaction.version", 99, SAFE_DOWNGRADE),
            ("an unknown feature", "no.such.version", 1, UPGRADE),
            ("a level of metadata.version that is lost", "metadata.version", 8, SAFE_DOWNGRADE),
            ("the same, unsafely", "metadata.version", 8, UNSAFE_DOWNGRADE),
            ("an unknown type", "group.version", 1, 9),
        ):
            update = FeatureUpdateKey(
                name,
                level,
                allow_downgrade=version == 0 and kind != UPGRADE,
                upgrade_type=kind if version else 1,
            )
            request = UpdateFeaturesRequest(feature_updates=[update], validate_only=version > 0)
            answer = client.call(request, version)
            answer.error_message = bool(answer.error_message)
            for result in answer.results:
                result.error_message = bool(result.error_message)
            transcript.note(title, answer)
    transcript.check()


def test_a_broker_that_is_not_there_cannot_leave(target: Target) -> None:
    transcript = Transcript(target, "unregister_broker")
    with WireClient(target) as client:
        transcript.note("broker 99", client.call(UnregisterBrokerRequest(99)))
    transcript.check()
