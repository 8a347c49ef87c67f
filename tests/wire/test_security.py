"""TLS and SASL against Apache Kafka, which offers a port for each way."""

import json
import time
from dataclasses import replace

import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from mainstem.wire import (
    Cluster,
    ConnectionLost,
    NoBrokerAnswers,
    SecurityError,
    WireError,
    from_kafka_options,
)
from mainstem.wire.connection import Connection
from tests.support.shared import session_folder, session_lock
from tests.support.target import await_leaders, unique_name
from tests.wire.certificates import KEY_PASSWORD, Certificates, make_certificates
from tests.wire.helpers import batch, numbered, read_all, with_offsets
from tests.wire.kafka_nodes import await_ready, new_cluster_id, start_node
from tests.wire.ports import free_ports

pytestmark = pytest.mark.peer

USER, PASSWORD = "alice, =the first", 'pass="word", \\ and=more'
LIFETIME_MS = 60_000
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "CONTROLLER": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "ELSEWHERE": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
}
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def quoted(text: str) -> str:
    """As Java reads it within quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def in_properties(text: str) -> str:
    return text.replace("\\", "\\\\")


def _settings(ports: dict[str, int], made: Certificates) -> dict[str, str]:
    plain = f'{PLAIN_MODULE} required username="broker" password="b" user_bob={quoted(PASSWORD)};'
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in LISTENERS.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(made.store("server")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(made.authority),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.elsewhere.ssl.keystore.type": "PEM",
        "listener.name.elsewhere.ssl.keystore.location": str(made.store("elsewhere")),
    }
    for name in ("sasl", "both"):
        settings[f"listener.name.{name}.plain.sasl.jaas.config"] = in_properties(plain)
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"listener.name.{name}.{mechanism}.sasl.jaas.config"] = f"{SCRAM_MODULE} required;"
    settings["listener.name.both.plain.connections.max.reauth.ms"] = str(LIFETIME_MS)
    return settings


def _start() -> dict[str, int]:
    folder = session_folder() / "certificates"
    folder.mkdir()
    made = make_certificates(folder)
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
    node = start_node(new_cluster_id(), ports["PLAINTEXT"], _settings(ports, made))
    await_ready(node, lambda cluster: cluster.metadata() == {})
    admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info = ScramCredentialInfo(mechanism, 4096)
        change = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(30)
    return ports


@pytest.fixture(scope="session")
def ports() -> dict[str, int]:
    """The ports of one Kafka for the whole session."""
    description = session_folder() / "secured.json"
    with session_lock("secured"):
        if not description.exists():
            description.write_text(json.dumps(_start()))
        found: dict[str, int] = json.loads(description.read_text())
        return found


@pytest.fixture(scope="session")
def made(ports: dict[str, int]) -> Certificates:
    return Certificates(session_folder() / "certificates")


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
        node_id = cluster.coordinator("any", "group")
        first = cluster._brokers.connection(node_id)
        assert 0 < first._expires_at - time.monotonic() < LIFETIME_MS / 1000
        first._expires_at = time.monotonic()
        assert cluster.coordinator("any", "group") == node_id
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
    options = from_kafka_options(
        {
            "bootstrap.servers": f"127.0.0.1:{ports['SASL']}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "bob",
            "sasl.password": PASSWORD,
        }
    )
    assert options.sasl is not None
    unknown = replace(options.sasl, mechanism="SCRAM-SHA-1")  # type: ignore[arg-type]
    with pytest.raises(SecurityError, match=r"set sasl.mechanism to one of .*SCRAM-SHA-512"):
        Connection("127.0.0.1", ports["SASL"], replace(options, sasl=unknown))
