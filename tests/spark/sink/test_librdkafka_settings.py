"""What a write asks of librdkafka, where only that speaks the SASL mechanism: translated, or refused."""

import pickle

import pytest

from mainstem.spark.librdkafka_options import without_secrets
from mainstem.spark.sink.errors import SinkOptionError
from mainstem.spark.sink.librdkafka_settings import LibrdkafkaSettings
from mainstem.spark.sink.options import parse
from tests.spark.sink.support import option_set
from tests.wire.token_logins import TOKEN


def settings(**options: str) -> LibrdkafkaSettings:
    given = {name.replace("_", "."): value for name, value in options.items()}
    found = parse(
        option_set(TOKEN | {f"kafka.{name}": value for name, value in given.items()}), streaming=True
    )
    assert found.librdkafka is not None
    return found.librdkafka


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "scram-sha-512"])
def test_the_mechanisms_of_the_own_client_are_left_to_it(mechanism: str) -> None:
    login = {"kafka.sasl.mechanism": mechanism, "kafka.sasl.username": "u", "kafka.sasl.password": "p"}
    parsed = parse(option_set({"kafka.security.protocol": "SASL_SSL", **login}), streaming=True)
    assert parsed.librdkafka is None
    assert parsed.client.sasl is not None
    assert parse(option_set({}), streaming=True).librdkafka is None


def test_a_protocol_with_a_login_and_no_mechanism_means_gssapi() -> None:
    parsed = parse(option_set({"kafka.security.protocol": "SASL_SSL"}), streaming=True)
    assert parsed.librdkafka is not None
    assert parsed.librdkafka.client["sasl.mechanism"] == "GSSAPI"


def test_the_defaults_are_the_sinks() -> None:
    found = settings()
    assert found.client == {
        "bootstrap.servers": "localhost:9092",
        "client.id": "mainstem",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.config": "principal=alice",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "socket.timeout.ms": 30_000,
        "socket.connection.setup.timeout.ms": 10_000,
        "retry.backoff.ms": 100,
        "retry.backoff.max.ms": 1_000,
        "log_level": 2,
    }
    assert found.producer == {
        "acks": -1,
        "enable.idempotence": True,
        "max.in.flight.requests.per.connection": 5,
        "compression.type": "none",
        "delivery.timeout.ms": 120_000,
        "request.timeout.ms": 30_000,
        "linger.ms": 5,
        "batch.size": 1_000_000,
        "message.max.bytes": 1_048_576,
        "queue.buffering.max.kbytes": 32 * 1024,
    }


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("acks", "1", {"acks": 1, "enable.idempotence": False, "max.in.flight.requests.per.connection": 1}),
        ("enable_idempotence", "false", {"acks": -1, "max.in.flight.requests.per.connection": 1}),
        ("compression_type", "ZSTD", {"compression.type": "zstd"}),
        ("delivery_timeout_ms", "5000", {"delivery.timeout.ms": 5000}),
        ("linger_ms", "0", {"linger.ms": 0}),
        ("batch_size", "5000", {"batch.size": 5000}),
        ("max_request_size", "2000", {"message.max.bytes": 2000, "batch.size": 2000}),
        (
            "max_request_size",
            "50000000",
            {"message.max.bytes": 50_000_000, "queue.buffering.max.kbytes": 97_656},
        ),
        ("request_timeout_ms", "7000", {"request.timeout.ms": 7000}),
    ],
)
def test_options_of_a_producer_are_translated(name: str, value: str, expected: dict[str, object]) -> None:
    assert expected.items() <= settings(**{name: value}).producer.items()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("client_id", "me", {"client.id": "me"}),
        ("request_timeout_ms", "7000", {"socket.timeout.ms": 7000}),
        ("retry_backoff_ms", "7", {"retry.backoff.ms": 7}),
        ("sasl_mechanism", " oauthbearer ", {"sasl.mechanism": "OAUTHBEARER"}),
        ("ssl_truststore_location", "/ca.pem", {"ssl.ca.location": "/ca.pem"}),
        ("https_ca_location", "/ca.pem", {"https.ca.location": "/ca.pem"}),
        (
            "sasl_jaas_config",
            'a.LoginModule required clientId="i" clientSecret="s\\"t" scope="all";',
            {
                "sasl.oauthbearer.client.id": "i",
                "sasl.oauthbearer.client.secret": 's"t',
                "sasl.oauthbearer.scope": "all",
            },
        ),
        (
            "sasl_oauthbearer_token_endpoint_url",
            "http://localhost/token",
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": "http://localhost/token",
            },
        ),
    ],
)
def test_options_of_any_client_are_translated(name: str, value: str, expected: dict[str, object]) -> None:
    assert expected.items() <= settings(**{name: value}).client.items()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("retry_backoff_ms", "0", "kafka.retry.backoff.ms is 0, it has to be from 1 to 300000: librdkafka"),
        (
            "request_timeout_ms",
            "600000",
            "kafka.request.timeout.ms is 600000, it has to be from 10 to 300000",
        ),
        ("max_request_size", "500", "kafka.max.request.size is 500, it has to be from 1000"),
        ("linger_ms", "soon", "kafka.linger.ms is 'soon', it has to be a whole number"),
        ("linger_ms", "200000", "has to be less than kafka.delivery.timeout.ms, 120000"),
        ("ssl_truststore_location", "/ca.jks", "ssl.truststore.location is not PEM"),
        ("sasl_client_callback_handler_class", "a.B", "is not supported together with the SASL mechanism"),
        ("sasl_mechanism", "OAUTHBEARR", "sasl.mechanism is 'OAUTHBEARR'; did you mean OAUTHBEARER?"),
        ("bootstrap_servers", "nowhere", "bootstrap.servers has 'nowhere', which is not HOST:PORT"),
    ],
)
def test_what_librdkafka_does_not_take_is_refused_with_what_to_do(name: str, value: str, words: str) -> None:
    with pytest.raises(SinkOptionError) as refusal:
        settings(**{name: value})
    assert words in str(refusal.value)


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "GSSAPI"])
def test_exactly_once_is_refused_with_what_to_do(mechanism: str) -> None:
    given = TOKEN | {"kafka.sasl.mechanism": mechanism, "exactlyOnce": "true", "checkpointLocation": "/c"}
    with pytest.raises(SinkOptionError) as refusal:
        parse(option_set(given), streaming=True)
    assert f"exactlyOnce does not go with the SASL mechanism {mechanism}" in str(refusal.value)
    assert "Set exactlyOnce to false" in str(refusal.value)
    assert "kafka.sasl.mechanism to one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512" in str(refusal.value)


def test_settings_travel_to_workers_and_show_no_secret() -> None:
    login = {"kafka.sasl.oauthbearer.client.secret": "hush", "kafka.ssl.key.password": "quiet"}
    parsed = parse(option_set(TOKEN | login), streaming=True)
    assert pickle.loads(pickle.dumps(parsed)) == parsed
    assert "hush" not in repr(parsed)
    assert parsed.librdkafka is not None
    told = without_secrets("the endpoint says: hush is not quiet", parsed.librdkafka.client)
    assert told == "the endpoint says: ... is not ..."
