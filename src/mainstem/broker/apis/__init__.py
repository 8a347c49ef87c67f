"""The APIs that this broker serves: one file per Kafka API key, found here by name and loaded on first use.

What is listed here is what ApiVersions advertises, in every version that the protocol declares for it.
A module defines `handle(ctx, request)`: it returns the response, `PARKED`, or a coroutine of the response.
"""

from typing import Final

SERVED: Final[dict[int, str]] = {
    0: "k00_produce",
    1: "k01_fetch",
    2: "k02_list_offsets",
    3: "k03_metadata",
    8: "k08_offset_commit",
    9: "k09_offset_fetch",
    10: "k10_find_coordinator",
    11: "k11_join_group",
    12: "k12_heartbeat",
    13: "k13_leave_group",
    14: "k14_sync_group",
    15: "k15_describe_groups",
    16: "k16_list_groups",
    18: "k18_api_versions",
    19: "k19_create_topics",
    20: "k20_delete_topics",
    21: "k21_delete_records",
    22: "k22_init_producer_id",
    23: "k23_offset_for_leader_epoch",
    24: "k24_add_partitions_to_txn",
    25: "k25_add_offsets_to_txn",
    26: "k26_end_txn",
    27: "k27_write_txn_markers",
    28: "k28_txn_offset_commit",
    32: "k32_describe_configs",
    33: "k33_alter_configs",
    34: "k34_alter_replica_log_dirs",
    35: "k35_describe_log_dirs",
    37: "k37_create_partitions",
    42: "k42_delete_groups",
    44: "k44_incremental_alter_configs",
    45: "k45_alter_partition_reassignments",
    46: "k46_list_partition_reassignments",
    47: "k47_offset_delete",
    60: "k60_describe_cluster",
    61: "k61_describe_producers",
    65: "k65_describe_transactions",
    66: "k66_list_transactions",
    68: "k68_consumer_group_heartbeat",
    69: "k69_consumer_group_describe",
    74: "k74_list_config_resources",
    75: "k75_describe_topic_partitions",
}
