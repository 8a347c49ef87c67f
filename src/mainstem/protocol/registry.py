"""The APIs of Kafka 4.3: their stable versions, and the way to their classes.
Those of delegation tokens and of clients' metrics are left out: nobody here serves them or asks for them.

The table is static so that header parsing and ApiVersions need none of the API modules: those are imported
one by one, when a class is asked for. It says what can be encoded and decoded. What a broker or a controller
serves, and on which listeners, is said in `broker/apis/`.
"""

from importlib import import_module
from typing import Any, NamedTuple

from mainstem.protocol.schema import VERSION_MAX

NEVER_FLEXIBLE = VERSION_MAX + 1


class ApiInfo(NamedTuple):
    """Facts about an API: its stable versions, and the first one with compact types and tags."""

    key: int
    name: str
    min_version: int
    max_version: int
    flexible_from: int
    module: str


_TABLE = (
    ApiInfo(0, "Produce", 3, 13, 9, "k00_produce"),
    ApiInfo(1, "Fetch", 4, 18, 12, "k01_fetch"),
    ApiInfo(2, "ListOffsets", 1, 11, 6, "k02_list_offsets"),
    ApiInfo(3, "Metadata", 0, 13, 9, "k03_metadata"),
    ApiInfo(8, "OffsetCommit", 2, 10, 8, "k08_offset_commit"),
    ApiInfo(9, "OffsetFetch", 1, 10, 6, "k09_offset_fetch"),
    ApiInfo(10, "FindCoordinator", 0, 6, 3, "k10_find_coordinator"),
    ApiInfo(11, "JoinGroup", 0, 9, 6, "k11_join_group"),
    ApiInfo(12, "Heartbeat", 0, 4, 4, "k12_heartbeat"),
    ApiInfo(13, "LeaveGroup", 0, 5, 4, "k13_leave_group"),
    ApiInfo(14, "SyncGroup", 0, 5, 4, "k14_sync_group"),
    ApiInfo(15, "DescribeGroups", 0, 6, 5, "k15_describe_groups"),
    ApiInfo(16, "ListGroups", 0, 5, 3, "k16_list_groups"),
    ApiInfo(17, "SaslHandshake", 0, 1, NEVER_FLEXIBLE, "k17_sasl_handshake"),
    ApiInfo(18, "ApiVersions", 0, 4, 3, "k18_api_versions"),
    ApiInfo(19, "CreateTopics", 2, 7, 5, "k19_create_topics"),
    ApiInfo(20, "DeleteTopics", 1, 6, 4, "k20_delete_topics"),
    ApiInfo(21, "DeleteRecords", 0, 2, 2, "k21_delete_records"),
    ApiInfo(22, "InitProducerId", 0, 5, 2, "k22_init_producer_id"),
    ApiInfo(23, "OffsetForLeaderEpoch", 2, 4, 4, "k23_offset_for_leader_epoch"),
    ApiInfo(24, "AddPartitionsToTxn", 0, 5, 3, "k24_add_partitions_to_txn"),
    ApiInfo(25, "AddOffsetsToTxn", 0, 4, 3, "k25_add_offsets_to_txn"),
    ApiInfo(26, "EndTxn", 0, 5, 3, "k26_end_txn"),
    ApiInfo(27, "WriteTxnMarkers", 1, 2, 1, "k27_write_txn_markers"),
    ApiInfo(28, "TxnOffsetCommit", 0, 5, 3, "k28_txn_offset_commit"),
    ApiInfo(29, "DescribeAcls", 1, 3, 2, "k29_describe_acls"),
    ApiInfo(30, "CreateAcls", 1, 3, 2, "k30_create_acls"),
    ApiInfo(31, "DeleteAcls", 1, 3, 2, "k31_delete_acls"),
    ApiInfo(32, "DescribeConfigs", 1, 4, 4, "k32_describe_configs"),
    ApiInfo(33, "AlterConfigs", 0, 2, 2, "k33_alter_configs"),
    ApiInfo(34, "AlterReplicaLogDirs", 1, 2, 2, "k34_alter_replica_log_dirs"),
    ApiInfo(35, "DescribeLogDirs", 1, 5, 2, "k35_describe_log_dirs"),
    ApiInfo(36, "SaslAuthenticate", 0, 2, 2, "k36_sasl_authenticate"),
    ApiInfo(37, "CreatePartitions", 0, 3, 2, "k37_create_partitions"),
    ApiInfo(42, "DeleteGroups", 0, 2, 2, "k42_delete_groups"),
    ApiInfo(43, "ElectLeaders", 0, 2, 2, "k43_elect_leaders"),
    ApiInfo(44, "IncrementalAlterConfigs", 0, 1, 1, "k44_incremental_alter_configs"),
    ApiInfo(45, "AlterPartitionReassignments", 0, 1, 0, "k45_alter_partition_reassignments"),
    ApiInfo(46, "ListPartitionReassignments", 0, 0, 0, "k46_list_partition_reassignments"),
    ApiInfo(47, "OffsetDelete", 0, 0, NEVER_FLEXIBLE, "k47_offset_delete"),
    ApiInfo(48, "DescribeClientQuotas", 0, 1, 1, "k48_describe_client_quotas"),
    ApiInfo(49, "AlterClientQuotas", 0, 1, 1, "k49_alter_client_quotas"),
    ApiInfo(50, "DescribeUserScramCredentials", 0, 0, 0, "k50_describe_user_scram_credentials"),
    ApiInfo(51, "AlterUserScramCredentials", 0, 0, 0, "k51_alter_user_scram_credentials"),
    ApiInfo(52, "Vote", 0, 2, 0, "k52_vote"),
    ApiInfo(53, "BeginQuorumEpoch", 0, 1, 1, "k53_begin_quorum_epoch"),
    ApiInfo(54, "EndQuorumEpoch", 0, 1, 1, "k54_end_quorum_epoch"),
    ApiInfo(55, "DescribeQuorum", 0, 2, 0, "k55_describe_quorum"),
    ApiInfo(56, "AlterPartition", 2, 3, 0, "k56_alter_partition"),
    ApiInfo(57, "UpdateFeatures", 0, 2, 0, "k57_update_features"),
    ApiInfo(58, "Envelope", 0, 0, 0, "k58_envelope"),
    ApiInfo(59, "FetchSnapshot", 0, 1, 0, "k59_fetch_snapshot"),
    ApiInfo(60, "DescribeCluster", 0, 2, 0, "k60_describe_cluster"),
    ApiInfo(61, "DescribeProducers", 0, 0, 0, "k61_describe_producers"),
    ApiInfo(62, "BrokerRegistration", 0, 4, 0, "k62_broker_registration"),
    ApiInfo(63, "BrokerHeartbeat", 0, 2, 0, "k63_broker_heartbeat"),
    ApiInfo(64, "UnregisterBroker", 0, 0, 0, "k64_unregister_broker"),
    ApiInfo(65, "DescribeTransactions", 0, 0, 0, "k65_describe_transactions"),
    ApiInfo(66, "ListTransactions", 0, 2, 0, "k66_list_transactions"),
    ApiInfo(67, "AllocateProducerIds", 0, 0, 0, "k67_allocate_producer_ids"),
    ApiInfo(68, "ConsumerGroupHeartbeat", 0, 1, 0, "k68_consumer_group_heartbeat"),
    ApiInfo(69, "ConsumerGroupDescribe", 0, 1, 0, "k69_consumer_group_describe"),
    ApiInfo(70, "ControllerRegistration", 0, 0, 0, "k70_controller_registration"),
    ApiInfo(73, "AssignReplicasToDirs", 0, 0, 0, "k73_assign_replicas_to_dirs"),
    ApiInfo(74, "ListConfigResources", 0, 1, 0, "k74_list_config_resources"),
    ApiInfo(75, "DescribeTopicPartitions", 0, 0, 0, "k75_describe_topic_partitions"),
    ApiInfo(76, "ShareGroupHeartbeat", 1, 1, 0, "k76_share_group_heartbeat"),
    ApiInfo(77, "ShareGroupDescribe", 1, 1, 0, "k77_share_group_describe"),
    ApiInfo(78, "ShareFetch", 1, 2, 0, "k78_share_fetch"),
    ApiInfo(79, "ShareAcknowledge", 1, 2, 0, "k79_share_acknowledge"),
    ApiInfo(80, "AddRaftVoter", 0, 1, 0, "k80_add_raft_voter"),
    ApiInfo(81, "RemoveRaftVoter", 0, 0, 0, "k81_remove_raft_voter"),
    ApiInfo(82, "UpdateRaftVoter", 0, 0, 0, "k82_update_raft_voter"),
    ApiInfo(83, "InitializeShareGroupState", 0, 0, 0, "k83_initialize_share_group_state"),
    ApiInfo(84, "ReadShareGroupState", 0, 0, 0, "k84_read_share_group_state"),
    ApiInfo(85, "WriteShareGroupState", 0, 1, 0, "k85_write_share_group_state"),
    ApiInfo(86, "DeleteShareGroupState", 0, 0, 0, "k86_delete_share_group_state"),
    ApiInfo(87, "ReadShareGroupStateSummary", 0, 1, 0, "k87_read_share_group_state_summary"),
    ApiInfo(88, "StreamsGroupHeartbeat", 0, 0, 0, "k88_streams_group_heartbeat"),
    ApiInfo(89, "StreamsGroupDescribe", 0, 0, 0, "k89_streams_group_describe"),
    ApiInfo(90, "DescribeShareGroupOffsets", 0, 1, 0, "k90_describe_share_group_offsets"),
    ApiInfo(91, "AlterShareGroupOffsets", 0, 0, 0, "k91_alter_share_group_offsets"),
    ApiInfo(92, "DeleteShareGroupOffsets", 0, 0, 0, "k92_delete_share_group_offsets"),
)

API_KEYS: dict[int, ApiInfo] = {info.key: info for info in _TABLE}


def request_class(api_key: int) -> type[Any]:
    """The struct of an API's request, importing its module on first use; `KeyError` for an unknown key."""
    return _message_class(API_KEYS[api_key], "Request")


def response_class(api_key: int) -> type[Any]:
    """The struct of an API's response, importing its module on first use; `KeyError` for an unknown key."""
    return _message_class(API_KEYS[api_key], "Response")


def _message_class(info: ApiInfo, kind: str) -> type[Any]:
    module = import_module(f"mainstem.protocol.apis.{info.module}")
    found: type[Any] = getattr(module, info.name + kind)
    return found
