"""What one Python client writes, every Python client reads, byte for byte, in every codec."""

import time
from typing import Any

import pytest

from tests.support.clients import READERS, WRITERS, Message, read_confluent, write_confluent
from tests.support.target import Target

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Recent enough for the default retention.
_BASE_TIMESTAMP_MS = int(time.time() * 1000) - 3_600_000


def _messages(tag: str, count: int = 40) -> list[Message]:
    """Messages with everything that may be absent, empty or odd."""
    special = [
        Message(None, b"null value"),
        Message(b"null key", None),
        Message(b"", b""),
        Message(b"headers", b"k", (("a", b"1"), ("a", b"2"), ("empty", b""), ("ü", b"\xff\x00"))),
        Message(bytes(range(256)) * 40, bytes(range(256))),
    ]
    plain = [Message(f"{tag} {number} ".encode() * 20, f"key {number}".encode()) for number in range(count)]
    return [
        Message(message.value, message.key, message.headers, _BASE_TIMESTAMP_MS + number)
        for number, message in enumerate(special + plain)
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_every_client_reads_what_every_client_wrote(target: Target, topic: str, codec: str) -> None:
    expected: list[Message] = []
    for name, write in WRITERS.items():
        written = write(target, topic, _messages(name), codec=codec)
        assert [message.offset for message in written] == list(
            range(len(expected), len(expected) + len(written))
        )
        expected += written
    for name, read in READERS.items():
        messages = read(target, topic, len(expected))
        assert messages == expected, name
        assert [message.offset for message in messages] == list(range(len(expected))), name


def test_a_message_may_have_neither_key_nor_value(target: Target, topic: str) -> None:
    messages = [Message(None, None, (("only", b"headers"), ("null", None)), _BASE_TIMESTAMP_MS)]
    write_confluent(target, topic, messages)
    assert read_confluent(target, topic, 1) == messages


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("client", WRITERS)
def test_messages_arrive_with_every_kind_of_acknowledgement(
    target: Target, topic: str, client: str, acks: int | str
) -> None:
    messages = _messages(client)
    settings: dict[str, Any] = (
        {} if acks == "all" or client == "confluent-kafka" else {"enable_idempotence": False}
    )
    WRITERS[client](target, topic, messages, acks=acks, **settings)
    assert READERS["confluent-kafka"](target, topic, len(messages)) == messages
