"""Topics of a secured cluster through Spark: the options of Spark's connector, word for word."""

import pytest
from pyspark.sql import Row, SparkSession

from mainstem.spark.source.client import open_client
from mainstem.spark.source.errors import ReadError
from mainstem.spark.source.offset_lookup import OffsetLookup
from mainstem.spark.source.options import parse_options
from mainstem.spark.source.planning import OffsetRange
from mainstem.spark.source.task_reading import TaskPartition, read_task
from mainstem.wire import NoBrokerAnswers
from tests.spark.source.topics import Topics, read_batch, values
from tests.wire.secured_kafka import (
    PASSWORD,
    SCRAM_MODULE,
    USER,
    quoted,
    secured_certificates,
    secured_ports,
)
from tests.wire.token_logins import SECRET, TOKEN, UNWANTED_TOKEN, java_login

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    return secured_ports()


@pytest.fixture(scope="module")
def topics(ports: dict[str, int]) -> Topics:
    return Topics(f"127.0.0.1:{ports['PLAINTEXT']}")


@pytest.fixture(scope="module")
def secured(ports: dict[str, int]) -> dict[str, str]:
    login = f"{SCRAM_MODULE} required username={quoted(USER)} password={quoted(PASSWORD)};"
    return {
        "kafka.bootstrap.servers": f"127.0.0.1:{ports['BOTH']}",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": login,
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(secured_certificates().authority),
    }


def test_the_connectors_options_read_and_write_over_tls_with_a_login(
    spark: SparkSession, topics: Topics, secured: dict[str, str]
) -> None:
    topic = topics.create(2)
    frame = spark.range(100).selectExpr("CAST(id AS STRING) AS key", "CAST(id * id AS STRING) AS value")
    frame.write.format("mainstem").mode("append").options(**secured).option("topic", topic).save()

    def rows(form: str) -> list[Row]:
        loaded = spark.read.format(form).options(**secured).option("subscribe", topic).load()
        return sorted(loaded.collect(), key=lambda row: (row.partition, row.offset))

    ours = rows("mainstem")
    assert ours == rows("kafka")
    assert {(row.key, row.value) for row in ours} == {
        (b"%d" % number, b"%d" % number**2) for number in range(100)
    }


def test_a_wrong_password_is_one_clear_error(
    spark: SparkSession, topics: Topics, secured: dict[str, str]
) -> None:
    topic = topics.create()
    login = secured["kafka.sasl.jaas.config"].replace("and=more", "and=less")
    wrong = secured | {"kafka.sasl.jaas.config": login}
    loaded = spark.read.format("mainstem").options(**wrong).option("subscribe", topic).load()
    with pytest.raises(Exception, match="does not accept user") as raised:
        loaded.collect()
    assert "and=less" not in str(raised.value)


def test_tokens_are_read_with_on_the_own_client(ports: dict[str, int], topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, range(50))
    rows = read_batch(f"127.0.0.1:{ports['TOKEN']}", subscribe=topic, **TOKEN)
    assert values(rows) == [str(number) for number in range(50)]


# Longer than the tests may take: what is told in time is not told because time is up.
PATIENT = {"kafka.default.api.timeout.ms": "3600000", "kafkaConsumer.pollTimeoutMs": "3600000"}


def refusals(servers: str, login: dict[str, str]) -> list[str]:
    """What is said on the driver, and what a task says that begins with reading."""
    given = {"kafka.bootstrap.servers": servers, "subscribe": "any", **PATIENT, **login}
    options = parse_options(given, "batch")
    found: list[str] = []
    with pytest.raises(ReadError) as raised:
        OffsetLookup(options).assigned()
    found.append(str(raised.value))
    with pytest.raises(ReadError) as raised:
        list(read_task(options, TaskPartition((OffsetRange("any", 0, 0, 10),))))
    return [*found, str(raised.value)]


def test_javas_options_of_a_login_read(ports: dict[str, int], topics: Topics, token_endpoint: str) -> None:
    topic = topics.create()
    topics.send(topic, range(5))
    rows = read_batch(f"127.0.0.1:{ports['TOKEN']}", subscribe=topic, **java_login(token_endpoint, SECRET))
    assert values(rows) == ["0", "1", "2", "3", "4"]


def test_a_login_that_a_broker_refuses_is_told_at_once(ports: dict[str, int]) -> None:
    servers = f"127.0.0.1:{ports['TOKEN']}"
    for text in refusals(servers, UNWANTED_TOKEN):
        assert f"the broker at {servers} does not accept the token of 'alice'" in text
        assert "invalid_token" in text


def test_a_wrong_secret_is_told_at_once_without_it(ports: dict[str, int], token_endpoint: str) -> None:
    for text in refusals(f"127.0.0.1:{ports['TOKEN']}", java_login(token_endpoint, "wrong-secret")):
        assert f"the token endpoint {token_endpoint} gives no token: HTTP status 401, invalid_client" in text
        assert "wrong-secret" not in text


def test_a_token_endpoint_that_is_not_there_is_told_soon(ports: dict[str, int]) -> None:
    login = java_login("http://127.0.0.1:1/token", SECRET) | {"kafka.sasl.login.retry.backoff.max.ms": "200"}
    for text in refusals(f"127.0.0.1:{ports['TOKEN']}", login):
        assert text == "the token endpoint http://127.0.0.1:1/token does not answer: connection refused"


def test_an_unreachable_broker_is_told() -> None:
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "any", **TOKEN}
    given["kafka.default.api.timeout.ms"] = "500"
    with (
        open_client(parse_options(given, "batch")) as client,
        pytest.raises(NoBrokerAnswers, match=r"no broker answers at 127\.0\.0\.1:1 .*connection refused"),
    ):
        client.topics(None)
