"""One Apache Kafka with a port for each way to be secured, for the whole session."""

import json

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.shared import session_folder, session_lock
from tests.wire.certificates import Certificates, make_certificates
from tests.wire.kafka_nodes import await_ready, new_cluster_id, start_node
from tests.wire.ports import free_ports

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
    "TOKEN": "SASL_PLAINTEXT",
}
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
TOKEN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


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
        "auto.create.topics.enable": "false",
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
    settings["listener.name.token.sasl.enabled.mechanisms"] = "OAUTHBEARER"
    settings["listener.name.token.oauthbearer.sasl.jaas.config"] = (
        f'{TOKEN_MODULE} required unsecuredLoginStringClaim_sub="broker";'
    )
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


def secured_ports() -> dict[str, int]:
    """The port of each listener."""
    description = session_folder() / "secured.json"
    with session_lock("secured"):
        if not description.exists():
            description.write_text(json.dumps(_start()))
        found: dict[str, int] = json.loads(description.read_text())
        return found


def secured_certificates() -> Certificates:
    """The certificates of that Kafka and of its clients."""
    secured_ports()
    return Certificates(session_folder() / "certificates")
