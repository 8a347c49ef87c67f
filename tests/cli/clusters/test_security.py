"""Every kind of command logs in with the settings of one file, as Java's tools have it, on Apache Kafka."""

from pathlib import Path

import pytest

from tests.cli.command import run_command
from tests.support.target import unique_name
from tests.wire.certificates import KEY_PASSWORD
from tests.wire.secured_kafka import (
    LISTENERS,
    PASSWORD,
    PLAIN_MODULE,
    SCRAM_MODULE,
    USER,
    in_properties,
    quoted,
    secured_certificates,
    secured_ports,
)
from tests.wire.token_logins import token_text

pytestmark = pytest.mark.peer


def login(module: str, user: str) -> str:
    return f"{module} required username={quoted(user)} password={quoted(PASSWORD)};"


def settings_for(listener: str, mechanism: str, folder: Path) -> dict[str, str]:
    made = secured_certificates()
    settings = {"security.protocol": LISTENERS[listener]}
    if "SSL" in LISTENERS[listener]:
        # On one line, as a properties file has it.
        settings["ssl.truststore.type"] = "PEM"
        settings["ssl.truststore.certificates"] = made.authority.read_text().replace("\n", " ")
    if listener == "MUTUAL":
        settings["ssl.keystore.type"] = "PEM"
        settings["ssl.keystore.certificate.chain"] = made.certificate("client").read_text().replace("\n", " ")
        settings["ssl.keystore.key"] = made.encrypted_client_key.read_text().replace("\n", " ")
        settings["ssl.key.password"] = KEY_PASSWORD
    if listener == "ELSEWHERE":
        settings["ssl.endpoint.identification.algorithm"] = ""
    if mechanism == "OAUTHBEARER":
        (folder / "token").write_text(token_text())
        token = {"sasl.oauthbearer.token.endpoint.url": (folder / "token").as_uri()}
        settings |= {"sasl.mechanism": mechanism} | token
    elif mechanism:
        module, user = (PLAIN_MODULE, "bob") if mechanism == "PLAIN" else (SCRAM_MODULE, USER)
        settings |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login(module, user)}
    return settings


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("TLS", ""),
        ("MUTUAL", ""),
        ("ELSEWHERE", ""),
        ("SASL", "PLAIN"),
        ("BOTH", "SCRAM-SHA-512"),
        ("TOKEN", "OAUTHBEARER"),
    ],
)
def test_one_file_of_settings_logs_every_command_in(tmp_path: Path, listener: str, mechanism: str) -> None:
    file = tmp_path / "client.properties"
    settings = settings_for(listener, mechanism, tmp_path)
    file.write_text("".join(f"{name}={in_properties(text)}\n" for name, text in settings.items()))
    name, group = unique_name("secured"), unique_name("group")
    environment = {
        "MAINSTEM_BOOTSTRAP": f"127.0.0.1:{secured_ports()[listener]}",
        "MAINSTEM_COMMAND_CONFIG": str(file),
    }

    def mainstem(*arguments: str, stdin: str = "") -> str:
        done = run_command(*arguments, stdin=stdin, environment=environment)
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stderr
        return done.stdout

    mainstem("topics", "create", name, "--partitions", "1")
    mainstem("produce", name, stdin="one\ntwo\n")
    assert mainstem("consume", name, "-B", "-n", "2") == "one\ntwo\n"
    assert mainstem("consume", name, "-B", "-n", "2", "--group", group) == "one\ntwo\n"
    assert f"{name}  0" in mainstem("groups", "describe", group)
    mainstem("config", "set", "retention.ms=7200000", "--topic", name)
    assert name in mainstem("logs", "sizes", name)
    mainstem("transactions", "list")
    assert mainstem("topics", "delete", name) == f"deleted {name}\n"
