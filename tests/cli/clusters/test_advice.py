"""Errors of a cluster as sentences with a next step."""

import pytest

from mainstem.cli.clusters.advice import advise
from mainstem.protocol.errors import ErrorCode
from mainstem.wire import ConnectionLost, KafkaRefusal, NotServed, SecurityError, UnsupportedOption, WireError


def test_codes_become_sentences_with_a_next_step() -> None:
    refused = advise(KafkaRefusal(ErrorCode.NON_EMPTY_GROUP, "delete billing"))
    assert refused.message == "delete billing: The group still has members."
    assert str(refused.hint).startswith("stop its consumers first")
    assert advise(KafkaRefusal(999, "ask")).message == "ask: error 999, which is not known here"
    assert advise(KafkaRefusal(ErrorCode.INVALID_CONFIG, "alter x", "retention.ms: no")).message == (
        "alter x: retention.ms: no"
    )


@pytest.mark.parametrize(
    ("problem", "hint"),
    [
        ("connection refused", "start one with `mainstem up`"),
        ("that is no Kafka broker: it speaks HTTP", "is that a Kafka broker?"),
        ("it did not answer ApiVersions in 15 s", "is that a Kafka broker?"),
        ("it speaks TLS: set security.protocol to SSL or SASL_SSL", "say how to log in"),
    ],
)
def test_an_unreachable_broker_gets_the_hint_that_fits(problem: str, hint: str) -> None:
    lost = advise(ConnectionLost("host:9092", problem))
    assert lost.message == f"no broker answers at host:9092 ({problem})"
    assert str(lost.hint).startswith(hint)


def test_a_broker_that_keeps_silent_is_not_said_to_be_gone() -> None:
    lost = advise(ConnectionLost("host:9092", "it did not answer CreateTopics in 15 s"))
    assert lost.message == "the broker at host:9092 does not answer (it did not answer CreateTopics in 15 s)"
    assert "`mainstem cluster status`" in str(lost.hint)


def test_a_suggestion_of_the_broker_is_the_hint() -> None:
    refused = advise(KafkaRefusal(ErrorCode.INVALID_CONFIG, "alter x", "no such; did you mean retention.ms?"))
    assert (refused.message, refused.hint) == ("alter x: no such", "did you mean retention.ms?")


def test_a_port_without_logins_is_said_to_be_one() -> None:
    refused = advise(NotServed("host:9092", "SaslHandshake"))
    assert refused.message == "the broker at host:9092 has no login on this port"


def test_other_errors_keep_their_words() -> None:
    assert advise(NotServed("host:9092", "OffsetDelete")).message == (
        "the broker at host:9092 does not serve OffsetDelete"
    )
    refused = advise(SecurityError("the broker does not take SASL PLAIN; set sasl.mechanism to one of X"))
    assert (refused.hint, refused.exit_code) == ("set sasl.mechanism to one of X", 1)
    assert advise(UnsupportedOption("sasl.x is not supported; leave it out")).exit_code == 2
    assert advise(WireError("odd")).message == "odd"
