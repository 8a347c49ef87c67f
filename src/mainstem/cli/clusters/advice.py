"""What went wrong with a cluster as a sentence for the person, with a next step where one is known.

Every command gets its errors here, so that an unreachable broker reads the same everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainstem.cli.errors import CommandError, in_two_lines
from mainstem.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from mainstem.wire import WireError

HINTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`mainstem topics list` shows what is there",
    ErrorCode.TOPIC_ALREADY_EXISTS: "`mainstem topics describe` shows it, `topics alter` changes it",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "use up to 249 letters, digits, '.', '_' and '-'; "
    "'.' and '_' count as one",
    ErrorCode.INVALID_PARTITIONS: "a topic's partitions can only grow: give more than it has now",
    ErrorCode.INVALID_REPLICATION_FACTOR: "give at most as many copies as there are brokers, or leave "
    "--replication-factor out",
    ErrorCode.INVALID_CONFIG: "docs/configuration.md lists every setting with its range",
    ErrorCode.MESSAGE_TOO_LARGE: "raise it: `mainstem topics alter TOPIC --config max.message.bytes=N`",
    ErrorCode.INVALID_RECORD: "a compacted topic takes only messages with keys: see --key-separator",
    ErrorCode.NOT_ENOUGH_REPLICAS: "start more of its brokers, or lower min.insync.replicas: "
    "`mainstem topics describe TOPIC` shows who is in sync",
    ErrorCode.UNSUPPORTED_VERSION: "the broker does not serve this request",
    ErrorCode.GROUP_ID_NOT_FOUND: "`mainstem groups list` shows what is there",
    ErrorCode.NON_EMPTY_GROUP: "stop its consumers first; `mainstem groups members GROUP` shows them",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop the consumers that read this topic in the group first",
    ErrorCode.INVALID_GROUP_ID: "give the name of a group: `mainstem groups list` shows them",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "ask for the right to this group",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "ask for the right to this topic",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ask for the right to act on the cluster",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the broker is still starting: try again in a moment",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`mainstem transactions list` shows what is there",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "ask for the right to this transactional id",
    ErrorCode.CONCURRENT_TRANSACTIONS: "its transaction is still being ended: try again in a moment",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "write it in RE2's syntax, for the whole id: 'app-.*'",
    ErrorCode.INVALID_PRODUCER_EPOCH: "the producer has gone on since: "
    "`mainstem transactions describe-producers` shows where it is",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "a newer coordinator has written to this partition: "
    "`mainstem transactions describe-producers` shows its epoch",
}
_NO_BROKER = "is that a Kafka broker? Give the address of a broker with -b HOST:PORT or MAINSTEM_BOOTSTRAP"
# What a connection says that was made, and gave nothing that a Kafka broker would give.
_SIGNS_OF_OTHERS = (
    "no Kafka broker",
    "no answer of a Kafka broker",
    "did not answer ApiVersions",
    "not asked for",
)
_NO_LOGIN = "say how to log in with --command-config FILE or --command-property security.protocol=..."
_HANGS = (
    "the node may hang, or the cluster may have no active controller: see `mainstem cluster status`, or ask "
    "another node with -b HOST:PORT"
)
_NOTHING_THERE = "start one with `mainstem up`, or name another with -b HOST:PORT or MAINSTEM_BOOTSTRAP"


def advise(error: WireError) -> CommandError:
    """An error of the own client."""
    from mainstem.wire import ConnectionLost, InvalidOption, KafkaRefusal, NotServed, UnsupportedOption

    match error:
        case KafkaRefusal():
            message, near, name = f"{error.what}: {error.message}".rpartition("; did you mean ")
            if near:
                return CommandError(message, f"did you mean {name}")
            return CommandError(f"{error.what}: {error.message}", HINTS.get(error.code))
        case ConnectionLost():
            return unreachable(error.address, error.problem)
        case NotServed(api_name="SaslHandshake"):
            return CommandError(
                f"the broker at {error.address} has no login on this port",
                "set security.protocol to PLAINTEXT or SSL, or name another port with -b HOST:PORT",
            )
        case NotServed():
            return CommandError(
                f"the broker at {error.address} does not serve {error.api_name}",
                "this command needs a broker that does: a newer one, or another with -b HOST:PORT",
            )
        case InvalidOption() | UnsupportedOption():
            return in_two_lines(str(error), "mainstem COMMAND --help shows every option", exit_code=2)
        case _:
            return in_two_lines(str(error))


def unreachable(addresses: str, problem: str) -> CommandError:
    """The answer to every command that finds no broker, or one that keeps silent."""
    from mainstem.wire.errors import NO_ANSWER

    hint = _NOTHING_THERE
    if any(sign in problem for sign in _SIGNS_OF_OTHERS):
        hint = _NO_BROKER
    elif "security.protocol" in problem:
        hint = _NO_LOGIN
    elif problem.startswith(NO_ANSWER):
        return CommandError(f"the broker at {addresses} does not answer ({problem})", _HANGS)
    return CommandError(f"no broker answers at {addresses} ({problem})", hint)
