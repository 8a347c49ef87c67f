"""Which cluster a command talks to: addresses that are wrong or lead elsewhere, and client settings."""

import re
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from mainstem.cli.clusters.target import Target
from mainstem.cli.errors import CommandError
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker
from mainstem.wire import Connection
from mainstem.wire.errors import check
from tests.cli.conftest import Mainstem


def test_no_broker_says_how_to_start_one(mainstem: Mainstem) -> None:
    result = mainstem("topics", "list", "-b", "localhost:1")
    assert result.returncode == 1
    assert result.stderr.startswith("mainstem: no broker answers at localhost:1 (")
    assert re.search(r"start one with `(\./)?mainstem up`", result.stderr)
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("address", ["localhost:99999", "localhost:0", "localhost"])
def test_an_address_that_is_none_is_a_wrong_command_line(mainstem: Mainstem, address: str) -> None:
    refused = mainstem("topics", "list", "-b", address)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"mainstem: bootstrap.servers has '{address}', which is not HOST:PORT\n"
        "  -> write it as -b localhost:9092; a port is a number from 1 to 65535\n"
    )


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "that is no Kafka broker: it speaks HTTP"),
        (None, "it did not answer ApiVersions in 0.3 s"),
    ],
)
def test_what_is_no_broker_is_not_taken_for_one(
    mainstem: Mainstem, answer: bytes | None, problem: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(ConnectionResetError):
                connection.recv(1)
                if answer is not None:
                    connection.sendall(answer)
                while connection.recv(1024):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        impatient = ("--command-property", "request.timeout.ms=300") if answer is None else ()
        refused = mainstem("topics", "list", "-b", address, *impatient)
        thread.join(30)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"mainstem: no broker answers at {address} ({problem})\n"
        "  -> is that a Kafka broker? Give the address of a broker with -b HOST:PORT or MAINSTEM_BOOTSTRAP\n"
    )


def test_settings_of_the_client_come_from_a_file_and_from_options(
    broker: Broker, mainstem: Mainstem, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={broker.bootstrap_servers}\nsecurity.protocol=SSL\n")
    encrypted = mainstem("topics", "list", "--command-config", str(file))
    assert encrypted.returncode == 1
    assert "ssl" in encrypted.stderr
    plain = ("--command-config", str(file), "--command-property", "security.protocol=PLAINTEXT")
    assert mainstem("topics", "list", *plain).returncode == 0
    wrong = mainstem("topics", "list", "--command-property", "sasl.mechanissm=PLAIN")
    assert wrong.returncode == 2
    assert "did you mean sasl.mechanism" in wrong.stderr
    assert mainstem("topics", "list", "--command-config", str(tmp_path / "absent")).returncode == 2


def test_what_is_waited_for_is_said_after_a_second(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "default.api.timeout.ms": "1500"}
    settings["retry.backoff.max.ms"] = "100"

    def refuse(_: Connection) -> None:
        check(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "find the coordinator of group billing")

    with (
        pytest.raises(CommandError, match="still loading"),
        Target(settings).connect() as cluster,
    ):
        cluster.at_broker(min(cluster.brokers()), refuse)
    assert capsys.readouterr().err == (
        "mainstem: still trying: find the coordinator of group billing: "
        "The coordinator is still loading its state.\n"
    )
