"""Error codes are Kafka's, and every one says something."""

import pytest
from kio.schema.errors import ErrorCode as PeerErrorCode

from mainstem.protocol.errors import ErrorCode, KafkaError


def test_codes_are_those_of_the_peer_codec() -> None:
    def spelling(name: str) -> str:
        return name.upper().replace("_", "")

    ours = {int(code): spelling(code.name) for code in ErrorCode}
    theirs = {code.value: spelling(code.name) for code in PeerErrorCode}
    assert ours == theirs


def test_codes_can_be_retried_as_in_the_peer_codec() -> None:
    ours = {int(code) for code in ErrorCode if code.retriable}
    assert ours == {code.value for code in PeerErrorCode if code.retriable}


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_has_a_sentence(code: ErrorCode) -> None:
    assert code.message.endswith(".")
    assert ErrorCode(int(code)) is code


def test_an_error_carries_its_own_message_or_that_of_its_code() -> None:
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no such setting")) == "INVALID_CONFIG: no such setting"
    assert KafkaError(ErrorCode.INVALID_CONFIG).message == ErrorCode.INVALID_CONFIG.message
