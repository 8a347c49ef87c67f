"""Rows to brokers that want a token: the options of Java's client, and refusals as one clear error."""

from pathlib import Path

import pytest

from mainstem.wire import SecurityError
from tests.spark.sink.support import read_values, rows, write
from tests.support.target import Target
from tests.wire.secured_kafka import secured_ports
from tests.wire.token_logins import SECRET, UNWANTED_TOKEN, java_login

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def kafka() -> Target:
    """Where that Kafka wants no login: topics are made and read there."""
    return Target("kafka", f"127.0.0.1:{secured_ports()['PLAINTEXT']}", Path())


@pytest.fixture(scope="module")
def servers() -> str:
    """Where it wants a token."""
    return f"127.0.0.1:{secured_ports()['TOKEN']}"


def test_javas_options_of_a_login_write(kafka: Target, servers: str, token_endpoint: str) -> None:
    topic = kafka.create_topic()
    write(servers, topic, rows([b"a", b"b"]), **java_login(token_endpoint, SECRET))
    assert read_values(kafka.bootstrap_servers, topic) == [b"a", b"b"]


def test_a_wrong_secret_is_one_clear_error_without_it(servers: str, token_endpoint: str) -> None:
    with pytest.raises(SecurityError, match="gives no token: HTTP status 401, invalid_client") as failure:
        write(servers, "any", rows([b"a"]), **java_login(token_endpoint, "wrong-secret"))
    assert "wrong-secret" not in str(failure.value)


def test_a_token_that_a_broker_refuses_is_one_clear_error(servers: str) -> None:
    with pytest.raises(SecurityError, match=r"does not accept the token of 'alice' .*invalid_token"):
        write(servers, "any", rows([b"a"]), **UNWANTED_TOKEN)
