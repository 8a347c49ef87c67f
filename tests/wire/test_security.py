"""TLS and SASL against Apache Kafka, which offers a port for each way."""

import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from mainstem.wire import (
    Cluster,
    ConnectionLost,
    NoBrokerAnswers,
    SecurityError,
    WireError,
    from_kafka_options,
)
from tests.support.target import await_leaders, unique_name
from tests.wire.certificates import KEY_PASSWORD, Certificates
from tests.wire.helpers import batch, numbered, read_all, with_offsets
from tests.wire.secured_kafka import (
    LIFETIME_MS,
    LISTENERS,
    PASSWORD,
    PLAIN_MODULE,
    SCRAM_MODULE,
    TOKEN_MODULE,
    USER,
    quoted,
    secured_certificates,
    secured_ports,
)
from tests.wire.token_logins import (
    SECRET,
    TOKEN,
    UNWANTED_TOKEN,
    TokenEndpoint,
    java_login,
    serve_tokens,
    token_text,
    without_prefix,
)

pytestmark = pytest.mark.peer


@pytest.fixture(scope="session")
def ports() -> dict[str, int]:
    return secured_ports()


@pytest.fixture(scope="session")
def made() -> Certificates:
    return secured_certificates()


def exchange(options: dict[str, str], ports: dict[str, int]) -> None:
    """Write and read a little in this way."""
    topic = unique_name("secured")
    values = numbered(20)
    with Cluster(from_kafka_options(options)) as cluster:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{ports['PLAINTEXT']}"})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        await_leaders(admin, topic, 1)
        cluster.produce({(topic, 0): [batch(values[:10]), batch(values[10:])]})
        assert read_all(cluster, {(topic, 0): (0, 20)})[topic, 0] == with_offsets(values)


def refused(options: dict[str, str]) -> str:
    with Cluster(from_kafka_options(options)) as cluster, pytest.raises(SecurityError) as raised:
        cluster.metadata()
    text = str(raised.value)
    assert PASSWORD not in text
    assert PASSWORD not in repr(cluster.options)
    return text


def tls(ports: dict[str, int], listener: str, **more: str) -> dict[str, str]:
    given = {"bootstrap.servers": f"127.0.0.1:{ports[listener]}", "security.protocol": "SSL"}
    return given | {f"ssl.{name.replace('_', '.')}": value for name, value in more.items()}


def test_tls_with_trusted_files_and_texts(ports: dict[str, int], made: Certificates) -> None:
    exchange(tls(ports, "TLS", truststore_type="PEM", truststore_location=str(made.authority)), ports)
    exchange(tls(ports, "TLS", ca_location=str(made.authority)), ports)
    text = made.authority.read_text()
    exchange(tls(ports, "TLS", truststore_type="PEM", truststore_certificates=text), ports)
    exchange(tls(ports, "TLS", truststore_certificates=text.replace("\n", " ")), ports)
    exchange(tls(ports, "TLS", ca_pem=text.replace("\n", "\\n")), ports)


def test_a_server_that_is_not_trusted_is_refused(ports: dict[str, int], made: Certificates) -> None:
    text = refused(tls(ports, "TLS", ca_location=str(made.stranger)))
    assert f"the certificate of the broker at 127.0.0.1:{ports['TLS']} is not accepted" in text
    assert "ssl.ca.location" in text
    assert "not accepted" in refused(tls(ports, "TLS"))
    assert "cannot be read" in refused(tls(ports, "TLS", ca_location=str(made.folder / "absent.pem")))


def test_the_name_in_the_certificate_counts_unless_said_otherwise(
    ports: dict[str, int], made: Certificates
) -> None:
    options = tls(ports, "ELSEWHERE", ca_location=str(made.authority))
    assert "IP address mismatch" in refused(options)
    exchange(options | {"ssl.endpoint.identification.algorithm": ""}, ports)


def test_a_client_shows_its_own_certificate(ports: dict[str, int], made: Certificates) -> None:
    options = tls(ports, "MUTUAL", ca_location=str(made.authority))
    store = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(made.store("client"))}
    exchange(options | store, ports)
    chain = {"ssl.keystore.certificate.chain": made.certificate("client").read_text()}
    exchange(options | chain | {"ssl.keystore.key": made.key("client").read_text()}, ports)
    encrypted = chain | {"ssl.keystore.key": made.encrypted_client_key.read_text().replace("\n", " ")}
    exchange(options | encrypted | {"ssl.key.password": KEY_PASSWORD}, ports)
    librdkafka = {
        "ssl.certificate.location": str(made.certificate("client")),
        "ssl.key.location": str(made.encrypted_client_key),
        "ssl.key.password": KEY_PASSWORD,
    }
    exchange(options | librdkafka, ports)
    assert "is ssl.key.password right?" in refused(options | librdkafka | {"ssl.key.password": "wrong"})
    assert "is ssl.key.password right?" in refused(options | encrypted)
    with Cluster(from_kafka_options(options)) as cluster, pytest.raises(WireError, match="certificate"):
        cluster.metadata()


@pytest.mark.parametrize("listener", ["SASL", "BOTH"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl(ports: dict[str, int], made: Certificates, listener: str, mechanism: str) -> None:
    module, user = (PLAIN_MODULE, "bob") if mechanism == "PLAIN" else (SCRAM_MODULE, USER)
    options = {
        "bootstrap.servers": f"127.0.0.1:{ports[listener]}",
        "security.protocol": LISTENERS[listener],
        "sasl.mechanism": mechanism,
        "ssl.ca.location": str(made.authority),
    }
    java = {"sasl.jaas.config": f"{module} required username={quoted(user)} password={quoted(PASSWORD)};"}
    librdkafka = {"sasl.username": user, "sasl.password": PASSWORD}
    exchange(options | java, ports)
    exchange(options | librdkafka, ports)
    text = refused(options | librdkafka | {"sasl.password": PASSWORD + "x"})
    assert f"does not accept user {user!r}" in text
    assert f"127.0.0.1:{ports[listener]}" in text
    refused(options | librdkafka | {"sasl.username": "nobody"})


def test_an_authentication_that_runs_out_is_made_anew(ports: dict[str, int], made: Certificates) -> None:
    options = from_kafka_options(
        {
            "bootstrap.servers": f"127.0.0.1:{ports['BOTH']}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "bob",
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(made.authority),
        }
    )
    with Cluster(options) as cluster:
        (node_id,) = cluster.brokers()
        assert cluster.at_coordinators("group", ["any"], lambda node, *_: [node]) == [node_id]
        first = cluster._brokers.connection(node_id)
        assert 0 < first._core.expires_at - time.monotonic() < LIFETIME_MS / 1000
        first._core.expires_at = time.monotonic()
        assert cluster.at_coordinators("group", ["any"], lambda node, *_: [node]) == [node_id]
        assert cluster.metadata() is not None
        assert cluster._brokers.connection(node_id) is not first


def test_the_wrong_security_protocol_is_named(ports: dict[str, int], made: Certificates) -> None:
    sasl = {"sasl.mechanism": "PLAIN", "sasl.username": "bob", "sasl.password": PASSWORD}
    quick = {"default.api.timeout.ms": "300", "request.timeout.ms": "3000"}

    def problem(listener: str, protocol: str, kind: type[WireError]) -> str:
        address = {"bootstrap.servers": f"127.0.0.1:{ports[listener]}", "security.protocol": protocol}
        with Cluster(from_kafka_options(sasl | quick | address)) as cluster, pytest.raises(kind) as raised:
            cluster.metadata()
        return str(raised.value)

    assert "it speaks TLS: set security.protocol" in problem("TLS", "PLAINTEXT", NoBrokerAnswers)
    assert "check bootstrap.servers, security.protocol" in problem("PLAINTEXT", "SSL", NoBrokerAnswers)
    assert "no SASL on this port" in problem("PLAINTEXT", "SASL_PLAINTEXT", SecurityError)
    assert "security.protocol" in problem("SASL", "PLAINTEXT", ConnectionLost)


def test_a_mechanism_that_the_broker_lacks_is_named(ports: dict[str, int]) -> None:
    options = {
        "bootstrap.servers": f"127.0.0.1:{ports['TOKEN']}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "bob",
        "sasl.password": PASSWORD,
    }
    assert "set sasl.mechanism to one of OAUTHBEARER" in refused(options)


def token_options(ports: dict[str, int], login: dict[str, str]) -> dict[str, str]:
    return {"bootstrap.servers": f"127.0.0.1:{ports['TOKEN']}"} | without_prefix(login)


def test_tokens_of_an_endpoint_are_asked_for_once(ports: dict[str, int]) -> None:
    with serve_tokens(TokenEndpoint()) as endpoint:
        for _ in range(2):
            exchange(token_options(ports, java_login(endpoint.url, SECRET)), ports)
    assert len(endpoint.asked) == 1


def test_tokens_of_a_file_and_unsecured_ones(ports: dict[str, int], tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token_text())
    bare = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    exchange(token_options(ports, bare | {"sasl.oauthbearer.token.endpoint.url": path.as_uri()}), ports)
    module = f'{TOKEN_MODULE} required unsecuredLoginStringClaim_sub="alice";'
    exchange(token_options(ports, bare | {"sasl.jaas.config": module}), ports)
    exchange(token_options(ports, TOKEN), ports)


def test_a_token_that_the_broker_refuses_is_told_with_its_status(ports: dict[str, int]) -> None:
    text = refused(token_options(ports, UNWANTED_TOKEN))
    assert "does not accept the token of 'alice' with SASL OAUTHBEARER" in text
    assert '{"status":"invalid_token"}' in text


def test_a_refused_token_is_replaced_for_the_next_connection(ports: dict[str, int], tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("not.a.token")
    bare = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    options = token_options(ports, bare | {"sasl.oauthbearer.token.endpoint.url": path.as_uri()})
    assert "does not accept the token with SASL OAUTHBEARER" in refused(options)
    path.write_text(token_text())
    exchange(options, ports)
