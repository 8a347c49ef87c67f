"""What librdkafka is told of how to reach a cluster is what the own client knows."""

from pathlib import Path

from mainstem.cli.clusters.librdkafka import common_settings
from mainstem.cli.clusters.target import Target

LOGIN = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";'


def test_a_plain_cluster_needs_nothing() -> None:
    assert common_settings(Target({"bootstrap.servers": "a:1,[::1]:2"}).options) == {
        "bootstrap.servers": "a:1,[::1]:2",
        "client.id": "mainstem-cli",
        "security.protocol": "PLAINTEXT",
        "socket.connection.setup.timeout.ms": 3000,
    }


def test_logins_and_certificates_in_java_s_words_are_translated() -> None:
    settings = common_settings(
        Target(
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": LOGIN,
                "ssl.truststore.location": "trusted.pem",
                "ssl.keystore.location": "own.pem",
                "ssl.key.password": "secret",
                "ssl.endpoint.identification.algorithm": "",
            }
        ).options
    )
    assert (settings["sasl.username"], settings["sasl.password"]) == ("u", "p")
    assert settings["sasl.mechanism"] == "SCRAM-SHA-512"
    assert settings["ssl.ca.location"] == "trusted.pem"
    assert settings["ssl.certificate.location"] == settings["ssl.key.location"] == "own.pem"
    assert settings["ssl.key.password"] == "secret"
    assert settings["ssl.endpoint.identification.algorithm"] == "none"


def test_a_token_comes_from_where_the_own_client_has_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6NDEwMjQ0NDgwMH0.")
    settings = common_settings(
        Target(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
            }
        ).options
    )
    assert settings["oauth_cb"]("") == (file.read_text(), 4102444800.0, "alice", {})
