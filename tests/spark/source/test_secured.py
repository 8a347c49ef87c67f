"""Topics of a secured cluster through Spark: the options of Spark's connector, word for word."""

import logging

import pytest
from pyspark.sql import Row, SparkSession

from tests.spark.source.topics import Topics, read_batch, values
from tests.wire.secured_kafka import (
    PASSWORD,
    SCRAM_MODULE,
    USER,
    quoted,
    secured_certificates,
    secured_ports,
)

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


def test_a_mechanism_that_only_librdkafka_speaks_is_read_through_it(
    ports: dict[str, int], topics: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    topic = topics.create()
    topics.send(topic, range(50))
    with caplog.at_level(logging.INFO):
        rows = read_batch(
            f"127.0.0.1:{ports['TOKEN']}",
            subscribe=topic,
            **{
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": "OAUTHBEARER",
                "kafka.sasl.oauthbearer.config": "principal=alice",
                "kafka.enable.sasl.oauthbearer.unsecure.jwt": "true",
            },
        )
    assert values(rows) == [str(number) for number in range(50)]
    assert "librdkafka" in caplog.text
