"""The options of a write: Spark's and Kafka's names and rules, and a suggestion for a name that is wrong."""

import os
import pickle

import pytest

from mainstem.spark.sink.errors import SinkOptionError
from mainstem.spark.sink.options import parse
from tests.spark.sink.support import option_set


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("topics", "did you mean topic?"),
        ("exactly_once", "did you mean exactlyOnce?"),
        ("checkpointLocatoin", "did you mean checkpointLocation?"),
        ("stagingDir", "did you mean stagingLocation?"),
        ("kafka.bootstrap.server", "did you mean kafka.bootstrap.servers?"),
        ("kafka.compression", "did you mean kafka.compression.type?"),
        ("kafka.batchsize", "did you mean kafka.batch.size?"),
        ("bootstrap.servers", "did you mean kafka.bootstrap.servers?"),
        ("bootstrap.server", "did you mean kafka.bootstrap.servers?"),
        ("linger.ms", "did you mean kafka.linger.ms?"),
        ("sasl.jaas.config", "did you mean kafka.sasl.jaas.config?"),
        ("no.such.thing", "the options of Kafka's client begin with kafka."),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest(wrong: str, hint: str) -> None:
    with pytest.raises(SinkOptionError, match="there is no option") as refusal:
        parse(option_set({wrong: "x"}), streaming=True)
    assert hint in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("kafka.key.serializer", "a.B", "keys are serialized with ByteArraySerializer"),
        ("kafka.value.serializer", "a.B", "values are serialized with ByteArraySerializer"),
        ("kafka.transactional.id", "mine", "set exactlyOnce to true"),
        ("kafka.interceptor.classes", "a.B", "DataFrame operations"),
        ("kafka.partitioner.class", "a.B", "a column partition"),
        ("kafka.acks", "2", "one of all, -1, 0, 1"),
        ("kafka.compression.type", "zip", "did you mean gzip?"),
        ("kafka.compression.type", "brotli", "one of none, gzip, snappy, lz4, zstd"),
        ("kafka.batch.size", "-1", "kafka.batch.size is '-1', it has to be a whole number from 1"),
        ("kafka.max.request.size", "big", "kafka.max.request.size"),
        ("kafka.enable.idempotence", "yes", "it has to be true or false"),
        ("exactlyOnce", "1", "exactlyOnce is '1', it has to be true or false"),
        ("topic", " ", "the option topic is empty"),
        ("kafka.security.protocol", "TLS", "security.protocol"),
        ("kafka.sasl.client.callback.handler.class", "a.B", "not supported"),
        ("txnAppId", "a", "set exactlyOnce to true"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(name: str, value: str, words: str) -> None:
    with pytest.raises(SinkOptionError) as refusal:
        parse(option_set({name: value}), streaming=True)
    assert words in str(refusal.value)


def test_brokers_are_needed() -> None:
    with pytest.raises(SinkOptionError, match=r"'kafka.bootstrap.servers' must be specified"):
        parse({"topic": "t"}, streaming=False)


def test_names_are_taken_in_any_case_as_spark_hands_them_over() -> None:
    parsed = parse(
        option_set({"TOPIC": " orders ", "EXACTLYONCE": "True", "checkpointlocation": "/c/"}), streaming=True
    )
    assert (parsed.topic, parsed.exactly_once) == ("orders", True)
    assert parsed.staging_location == "/c/mainstem-staging"


def test_options_of_reads_and_of_consumers_are_passed_over() -> None:
    shared = {
        "subscribe": "a",
        "startingOffsets": "earliest",
        "kafka.group.id": "g",
        "includeHeaders": "true",
    }
    assert parse(option_set(shared), streaming=True) == parse(option_set({}), streaming=True)


def test_an_option_that_kafka_does_not_have_passes_unless_it_is_a_slip() -> None:
    parse(option_set({"kafka.vendor.zone": "north"}), streaming=True)


@pytest.mark.parametrize(
    ("settings", "acks", "idempotent"),
    [
        ({}, -1, True),
        ({"kafka.acks": "-1"}, -1, True),
        ({"kafka.acks": "1"}, 1, False),
        ({"kafka.acks": "0"}, 0, False),
        ({"kafka.enable.idempotence": "false"}, -1, False),
    ],
)
def test_acks_and_idempotence_go_together_as_in_java(
    settings: dict[str, str], acks: int, idempotent: bool
) -> None:
    parsed = parse(option_set(settings), streaming=True)
    assert (parsed.acks, parsed.idempotent) == (acks, idempotent)


def test_idempotence_without_all_acknowledgements_is_refused() -> None:
    with pytest.raises(SinkOptionError, match=r"set kafka\.acks to all"):
        parse(option_set({"kafka.acks": "1", "kafka.enable.idempotence": "true"}), streaming=True)


def test_a_batch_is_never_larger_than_a_request() -> None:
    parsed = parse(
        option_set({"kafka.batch.size": "5000000", "kafka.max.request.size": "2000"}), streaming=True
    )
    assert (parsed.batch_bytes, parsed.record_bytes_max) == (2000, 2000)


@pytest.mark.parametrize("settings", [{"kafka.acks": "1"}, {"kafka.enable.idempotence": "false"}])
def test_exactly_once_needs_idempotence(settings: dict[str, str]) -> None:
    given = {"exactlyOnce": "true", "checkpointLocation": "/c", **settings}
    with pytest.raises(SinkOptionError, match=r"exactlyOnce needs kafka\.acks all"):
        parse(option_set(given), streaming=True)


def test_exactly_once_needs_a_place_for_staged_rows() -> None:
    with pytest.raises(
        SinkOptionError, match="set the option checkpointLocation on this write, or stagingLocation"
    ):
        parse(option_set({"exactlyOnce": "true"}), streaming=True)
    given = {"exactlyOnce": "true", "stagingLocation": "/s", "checkpointLocation": "/c"}
    assert parse(option_set(given), streaming=True).staging_location == "/s"


def test_a_relative_place_is_the_drivers() -> None:
    given = {"exactlyOnce": "true", "checkpointLocation": "checkpoint"}
    assert (
        parse(option_set(given), streaming=True).staging_location
        == f"{os.getcwd()}/checkpoint/mainstem-staging"
    )
    given = {"exactlyOnce": "true", "checkpointLocation": "s3a://bucket/checkpoint"}
    assert (
        parse(option_set(given), streaming=True).staging_location
        == "s3a://bucket/checkpoint/mainstem-staging"
    )


def test_an_application_and_its_version_belong_together_and_to_batch_writes() -> None:
    given = {"exactlyOnce": "true", "stagingLocation": "/s", "txnAppId": "job"}
    with pytest.raises(SinkOptionError, match="belong together"):
        parse(option_set(given), streaming=False)
    parsed = parse(option_set({**given, "txnVersion": "7"}), streaming=False)
    assert (parsed.application_id, parsed.application_version) == ("job", 7)
    with pytest.raises(SinkOptionError, match="for batch writes"):
        parse(option_set({**given, "txnVersion": "7"}), streaming=True)


def test_options_travel_to_workers_and_show_no_password() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hush";'
    secret = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    parsed = parse(option_set({**secret, "kafka.sasl.jaas.config": jaas}), streaming=True)
    assert pickle.loads(pickle.dumps(parsed)) == parsed
    assert "hush" not in repr(parsed)
