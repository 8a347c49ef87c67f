"""What can go wrong with a cluster, as exceptions that say what happened, where, and what to do.

A text here never holds a password. `ConnectionLost` and the refusals with a passing code are tried again
inside this package; what comes out of it has been tried until the time was up.
"""

from __future__ import annotations

from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition

Address = tuple[str, int]

# With what the problem of a connection begins whose broker kept silent.
NO_ANSWER = "it did not answer"


class WireError(Exception):
    """A request could not be made, or was not answered as it should be."""


class UnsupportedOption(WireError):
    """A client option that this client does not have, with what to write instead."""


class InvalidOption(WireError):
    """A client option with a value that it cannot have."""


class ConnectionLost(WireError):
    """A broker cannot be reached, hung up, kept silent, or sent what is no answer. Another attempt may do."""

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(f"no answer from the broker at {address}: {problem}")
        self.address = address
        self.problem = problem


class ConnectionRefused(ConnectionLost):
    """The machine is there, and nobody listens at the port: the broker has ended, or never began."""


class NoBrokerAnswers(ConnectionLost):
    """None of the bootstrap servers and known brokers can be reached."""

    def __init__(self, addresses: str, problem: str) -> None:
        super().__init__(addresses, problem)
        self.args = (
            f"no broker answers at {addresses} ({problem}); "
            "check bootstrap.servers, security.protocol and that the brokers run",
        )


class SecurityError(WireError):
    """The broker and this client do not accept each other: certificates, mechanism, or user and password."""


class TokenUnavailable(SecurityError):
    """Whoever gives tokens does not do so now. Another attempt may do."""


class NotServed(WireError):
    """The broker has no version of an API that this client knows."""

    def __init__(self, address: str, api_name: str) -> None:
        super().__init__(f"the broker at {address} does not serve {api_name}: it is too old, or too new")
        self.address = address
        self.api_name = api_name


class KafkaRefusal(WireError):
    """A broker answered with an error code."""

    def __init__(self, code: int, what: str, message: str | None = None) -> None:
        self.code = error_code(code)
        self.what = what
        self.message = message or self.code.message
        known = f"{self.code.name}: {self.message}"
        if self.code != code:
            known = self.message = f"error {code}, which is not known here"
        super().__init__(f"{what}: {known}")


class TopicGone(KafkaRefusal):
    """A topic or partition that was being read is not there any more, or is another one of the same name."""

    def __init__(self, partition: TopicPartition, code: ErrorCode, message: str) -> None:
        super().__init__(code, f"read {name_of(partition)}", message)
        self.partition = partition


class OffsetOutOfRange(KafkaRefusal):
    """The asked offset is not in the partition's log, which holds [log_start_offset, log_end_offset).

    The two are -1 where they could not be learned.
    """

    def __init__(
        self, partition: TopicPartition, offset: int, log_start_offset: int = -1, log_end_offset: int = -1
    ) -> None:
        held = (
            f"it holds {log_start_offset} to {log_end_offset}" if log_start_offset >= 0 else "it is unknown"
        )
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"read {name_of(partition)} from offset {offset}",
            f"the log does not reach there ({held})",
        )
        self.partition = partition
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


class NoProgress(WireError):
    """Nothing came for longer than the caller allowed."""


def error_code(code: int) -> ErrorCode:
    """The code, or UNKNOWN_SERVER_ERROR for a number that Kafka 4.3 does not have."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def check(code: int, what: str, message: str | None = None) -> None:
    """Raise the refusal that a code means; nothing for NONE."""
    if code != ErrorCode.NONE:
        raise KafkaRefusal(code, what, message)


def name_of(partition: TopicPartition) -> str:
    return f"{partition[0]}-{partition[1]}"
