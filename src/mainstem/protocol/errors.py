"""Kafka's error codes with what each means, and the exceptions that the whole broker raises.

The numbers and names are Kafka's; the messages are what a client shows when a handler gives none of its own.
`KafkaError` is an answer to the client, `ProtocolError` is the end of its connection.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """Every code of Kafka 4.3: its number, what it means, and True where clients may try again."""

    retriable: bool
    message: str

    def __new__(cls, code: int, message: str = "", retriable: bool = False) -> "ErrorCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.message = message
        return member

    UNKNOWN_SERVER_ERROR = (-1, "The server failed in a way it did not foresee; its log says more.")
    NONE = (0, "No error.")
    OFFSET_OUT_OF_RANGE = (1, "The offset lies outside what the partition's log still holds.")
    CORRUPT_MESSAGE = (2, "A record batch is damaged: its checksum, size or contents are not valid.", True)
    UNKNOWN_TOPIC_OR_PARTITION = (3, "This broker has no such topic or partition.", True)
    INVALID_FETCH_SIZE = (4, "The requested fetch size is not valid.")
    LEADER_NOT_AVAILABLE = (5, "The partition has no leader at the moment; an election is under way.", True)
    NOT_LEADER_OR_FOLLOWER = (6, "This broker is not the leader, or not a replica, of the partition.", True)
    REQUEST_TIMED_OUT = (7, "The request was not completed in the time it allowed.", True)
    BROKER_NOT_AVAILABLE = (8, "The broker is not available.")
    REPLICA_NOT_AVAILABLE = (9, "The replica that was asked for is not available.", True)
    MESSAGE_TOO_LARGE = (10, "A record batch is larger than the topic accepts (max.message.bytes).")
    STALE_CONTROLLER_EPOCH = (11, "The controller that sent this has been replaced by a newer one.")
    OFFSET_METADATA_TOO_LARGE = (12, "The metadata string of an offset commit is too long.")
    NETWORK_EXCEPTION = (13, "The connection was lost before a response arrived.", True)
    COORDINATOR_LOAD_IN_PROGRESS = (14, "The coordinator is still loading its state.", True)
    COORDINATOR_NOT_AVAILABLE = (15, "The coordinator is not available.", True)
    NOT_COORDINATOR = (16, "This broker does not coordinate the group or transactional id.", True)
    INVALID_TOPIC_EXCEPTION = (
        17,
        "The topic name is not valid, or the operation is not allowed on this topic.",
    )
    RECORD_LIST_TOO_LARGE = (18, "A record batch is larger than a log segment may be.")
    NOT_ENOUGH_REPLICAS = (
        19,
        "Fewer replicas are in sync than min.insync.replicas asks for; nothing was written.",
        True,
    )
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "The records were written, but to fewer in-sync replicas than required.",
        True,
    )
    INVALID_REQUIRED_ACKS = (21, "The required acks are none of 0, 1 and -1.")
    ILLEGAL_GENERATION = (22, "The generation id is not the group's current one.")
    INCONSISTENT_GROUP_PROTOCOL = (
        23,
        "The member shares no protocol with the group, or offered none at all.",
    )
    INVALID_GROUP_ID = (24, "The group id is not valid.")
    UNKNOWN_MEMBER_ID = (25, "The group has no member with this id.")
    INVALID_SESSION_TIMEOUT = (26, "The session timeout is outside the range that the broker allows.")
    REBALANCE_IN_PROGRESS = (27, "The group is rebalancing; the member has to join again.")
    INVALID_COMMIT_OFFSET_SIZE = (28, "The committed offset data has an invalid size.")
    TOPIC_AUTHORIZATION_FAILED = (29, "Access to the topic is denied.")
    GROUP_AUTHORIZATION_FAILED = (30, "Access to the group is denied.")
    CLUSTER_AUTHORIZATION_FAILED = (31, "The operation on the cluster is denied.")
    INVALID_TIMESTAMP = (32, "A record's timestamp is outside the range that the topic accepts.")
    UNSUPPORTED_SASL_MECHANISM = (33, "The broker does not offer this SASL mechanism.")
    ILLEGAL_SASL_STATE = (34, "The request does not fit the state of the SASL exchange.")
    UNSUPPORTED_VERSION = (35, "The broker does not serve this version of the API.")
    TOPIC_ALREADY_EXISTS = (36, "A topic with this name exists already.")
    INVALID_PARTITIONS = (37, "The number of partitions is not valid.")
    INVALID_REPLICATION_FACTOR = (
        38,
        "The replication factor is below one or above the number of live brokers.",
    )
    INVALID_REPLICA_ASSIGNMENT = (39, "The replica assignment is not valid.")
    INVALID_CONFIG = (40, "A configuration name or value is not valid.")
    NOT_CONTROLLER = (41, "This node is not the active controller.", True)
    INVALID_REQUEST = (42, "The request contradicts itself or breaks the rules of its API.")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (43, "The record format does not allow this operation.")
    POLICY_VIOLATION = (44, "A configured policy forbids the request.")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (
        45,
        "The producer's sequence number does not follow the last one that was written.",
    )
    DUPLICATE_SEQUENCE_NUMBER = (46, "The producer's sequence number was written before.")
    INVALID_PRODUCER_EPOCH = (47, "The producer used an epoch older than its current one.")
    INVALID_TXN_STATE = (48, "The transaction is not in a state that allows this operation.")
    INVALID_PRODUCER_ID_MAPPING = (49, "The producer id does not belong to this transactional id.")
    INVALID_TRANSACTION_TIMEOUT = (50, "The transaction timeout is larger than transaction.max.timeout.ms.")
    CONCURRENT_TRANSACTIONS = (51, "Another operation on the same transaction is still running.", True)
    TRANSACTION_COORDINATOR_FENCED = (
        52,
        "The transaction coordinator that sent the marker has been replaced.",
    )
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, "Access to the transactional id is denied.")
    SECURITY_DISABLED = (54, "Security features are switched off on this cluster.")
    OPERATION_NOT_ATTEMPTED = (
        55,
        "The operation was not tried because another one in the same request failed.",
    )
    KAFKA_STORAGE_ERROR = (56, "The log could not be read from or written to disk.", True)
    LOG_DIR_NOT_FOUND = (57, "The broker has no such log directory.")
    SASL_AUTHENTICATION_FAILED = (58, "SASL authentication failed.")
    UNKNOWN_PRODUCER_ID = (
        59,
        "The partition knows nothing of this producer id; its records may have expired.",
    )
    REASSIGNMENT_IN_PROGRESS = (60, "The partition is being reassigned.")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, "Delegation tokens are not enabled.")
    DELEGATION_TOKEN_NOT_FOUND = (62, "There is no such delegation token.")
    DELEGATION_TOKEN_OWNER_MISMATCH = (
        63,
        "The principal is neither owner nor renewer of the delegation token.",
    )
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        "This connection's kind of authentication may not ask for delegation tokens.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, "Access to the delegation token is denied.")
    DELEGATION_TOKEN_EXPIRED = (66, "The delegation token has expired.")
    INVALID_PRINCIPAL_TYPE = (67, "The principal type is not supported.")
    NON_EMPTY_GROUP = (68, "The group still has members.")
    GROUP_ID_NOT_FOUND = (69, "There is no such group.")
    FETCH_SESSION_ID_NOT_FOUND = (70, "The broker has no such fetch session.", True)
    INVALID_FETCH_SESSION_EPOCH = (71, "The epoch is not the next one of the fetch session.", True)
    LISTENER_NOT_FOUND = (72, "The leader has no listener of the name on which metadata was asked for.", True)
    TOPIC_DELETION_DISABLED = (73, "Deleting topics is switched off (delete.topic.enable).")
    FENCED_LEADER_EPOCH = (74, "The leader epoch in the request is older than the broker's.", True)
    UNKNOWN_LEADER_EPOCH = (75, "The leader epoch in the request is newer than the broker's.", True)
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        "The client's version does not know the compression of these records.",
    )
    STALE_BROKER_EPOCH = (77, "The broker epoch has changed since.")
    OFFSET_NOT_AVAILABLE = (
        78,
        "The new leader's high watermark has not caught up yet, so offsets are not certain.",
        True,
    )
    MEMBER_ID_REQUIRED = (79, "The member has to join again with the member id that it was given.")
    PREFERRED_LEADER_NOT_AVAILABLE = (80, "The preferred leader is not available.", True)
    GROUP_MAX_SIZE_REACHED = (81, "The group has as many members as it may have.")
    FENCED_INSTANCE_ID = (82, "Another member has taken over this group.instance.id.")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, "No replica that may lead the partition is available.", True)
    ELECTION_NOT_NEEDED = (84, "The partition needs no election.", True)
    NO_REASSIGNMENT_IN_PROGRESS = (85, "The partition is not being reassigned.")
    GROUP_SUBSCRIBED_TO_TOPIC = (
        86,
        "The group is subscribed to the topic, so its offsets cannot be deleted.",
    )
    INVALID_RECORD = (87, "A record breaks a rule of its topic and was refused.")
    UNSTABLE_OFFSET_COMMIT = (88, "Offsets of an open transaction have to be settled first.", True)
    THROTTLING_QUOTA_EXCEEDED = (89, "The quota is used up; try again after the throttle time.", True)
    PRODUCER_FENCED = (90, "A newer producer uses the same transactional id.")
    RESOURCE_NOT_FOUND = (91, "The request names a resource that does not exist.")
    DUPLICATE_RESOURCE = (92, "The request names the same resource twice.")
    UNACCEPTABLE_CREDENTIAL = (93, "The credential does not meet what is demanded of it.")
    INCONSISTENT_VOTER_SET = (94, "Sender or receiver is not a voter of the quorum.")
    INVALID_UPDATE_VERSION = (95, "The update's version is not valid.")
    FEATURE_UPDATE_FAILED = (96, "The feature levels could not be changed.")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, "The principal of a forwarded request could not be read.")
    SNAPSHOT_NOT_FOUND = (98, "There is no such snapshot.")
    POSITION_OUT_OF_RANGE = (99, "The position lies outside the snapshot.")
    UNKNOWN_TOPIC_ID = (100, "This broker has no topic with this id.", True)
    DUPLICATE_BROKER_REGISTRATION = (101, "Another live broker is registered with this id.")
    BROKER_ID_NOT_REGISTERED = (102, "No broker is registered with this id.")
    INCONSISTENT_TOPIC_ID = (103, "The topic id in the request is not that of the log.", True)
    INCONSISTENT_CLUSTER_ID = (104, "The cluster id in the request is not that of this cluster.")
    TRANSACTIONAL_ID_NOT_FOUND = (105, "There is no such transactional id.")
    FETCH_SESSION_TOPIC_ID_ERROR = (106, "The fetch session mixes requests with and without topic ids.", True)
    INELIGIBLE_REPLICA = (107, "The new ISR names a replica that may not be in it.")
    NEW_LEADER_ELECTED = (108, "The partition was changed, and it has a new leader now.")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, "The offset is in tiered storage.")
    FENCED_MEMBER_EPOCH = (
        110,
        "The member's epoch is fenced; it has to give up its partitions and join again.",
    )
    UNRELEASED_INSTANCE_ID = (111, "Another member still holds this instance id.")
    UNSUPPORTED_ASSIGNOR = (112, "The group does not support this assignor.")
    STALE_MEMBER_EPOCH = (113, "The member's epoch is out of date; the next heartbeat brings the new one.")
    MISMATCHED_ENDPOINT_TYPE = (114, "The request was sent to the wrong kind of endpoint.")
    UNSUPPORTED_ENDPOINT_TYPE = (115, "This kind of endpoint is not supported.")
    UNKNOWN_CONTROLLER_ID = (116, "There is no controller with this id.")
    UNKNOWN_SUBSCRIPTION_ID = (117, "The telemetry subscription id is unknown or out of date.")
    TELEMETRY_TOO_LARGE = (118, "The pushed telemetry is larger than the broker accepts.")
    INVALID_REGISTRATION = (119, "The controller does not accept the broker's registration.")
    TRANSACTION_ABORTABLE = (120, "The transaction has failed and can only be aborted.")
    INVALID_RECORD_STATE = (121, "The record is not in a state in which it can be acknowledged.")
    SHARE_SESSION_NOT_FOUND = (122, "The broker has no such share session.", True)
    INVALID_SHARE_SESSION_EPOCH = (123, "The epoch is not the next one of the share session.", True)
    FENCED_STATE_EPOCH = (124, "The state epoch of the share group does not match.")
    INVALID_VOTER_KEY = (125, "The voter key is not that of the replica that received it.")
    DUPLICATE_VOTER = (126, "The voter is a member of the voter set already.")
    VOTER_NOT_FOUND = (127, "The voter is not a member of the voter set.")
    INVALID_REGULAR_EXPRESSION = (128, "The regular expression is not valid.")
    REBOOTSTRAP_REQUIRED = (129, "The client's metadata is too old; it has to bootstrap anew.")
    STREAMS_INVALID_TOPOLOGY = (130, "The streams topology is not valid.")
    STREAMS_INVALID_TOPOLOGY_EPOCH = (131, "The streams topology epoch is not valid.")
    STREAMS_TOPOLOGY_FENCED = (132, "The streams topology epoch is out of date.")
    SHARE_SESSION_LIMIT_REACHED = (133, "The broker holds as many share sessions as it may.", True)


class KafkaError(Exception):
    """A refusal that the client is told: a code, and a message that says what happened and what to do."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message if message is not None else code.message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


class ProtocolError(Exception):
    """Bytes that are not the message they should be."""
