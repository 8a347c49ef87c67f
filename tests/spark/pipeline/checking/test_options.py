"""Options that the source, the sink or their client would refuse are found in the file, each at its place."""

import pytest

from mainstem.spark.pipeline.checking.validate import checked
from mainstem.spark.pipeline.file.reader import parse
from tests.spark.pipeline.told import told

BASE = """\
pipeline: p
dead_letters: p.dead
kafka: {KAFKA}
sources:
  orders:
    topic: orders
    decode: {format: json, schema: id BIGINT}
    options: {SOURCE}
sinks:
  out:
    from: orders
    topic: out
    options: {SINK}
"""
_LINES = {"KAFKA": 3, "SOURCE": 8, "SINK": 13}


def _problems(**options: str) -> list[str]:
    text = BASE
    for name in _LINES:
        text = text.replace(name, options.get(name, ""))
    document = checked(parse(text, "p.yaml"))
    return told(document)


def test_the_base_is_fine() -> None:
    assert _problems() == []


@pytest.mark.parametrize(
    ("part", "options", "column", "message"),
    [
        ("SOURCE", "maxRecordPerPartition: 5", 15, "does not exist -> did you mean maxRecordsPerPartition?"),
        ("SOURCE", "minPartitions: lots", 30, "minPartitions is 'lots', it has to be a whole number"),
        ("SOURCE", "kafka.auto.offset.reset: earliest", 15, "'kafka.auto.offset.reset' is not supported"),
        ("SOURCE", "endingOffsets: latest", 15, "endingOffsets is not valid in streaming queries"),
        ("SOURCE", "assign: '{}'", 23, "only one of the options subscribe, subscribePattern, assign"),
        ("SOURCE", "startingOffsets: earliest", 15, "has a key of its own in a pipeline -> write from"),
        ("SOURCE", "client: fast", 23, "client is 'fast', it has to be auto or librdkafka"),
        ("SINK", "stagingInlineByte: 5", 15, "-> did you mean stagingInlineBytes?"),
        ("SINK", "kafka.compression.type: zip", 39, "kafka.compression.type is 'zip' -> did you mean gzip?"),
        ("SINK", "kafka.acks: 1", 27, "exactlyOnce needs kafka.acks all"),
        ("SINK", "topic: other", 15, "topic has a key of its own in a pipeline -> write topic"),
        ("SINK", "kafka.transactional.id: x", 15, "'transactional.id' is not supported"),
        ("KAFKA", "secruity.protocol: SSL", 9, "does not exist -> did you mean security.protocol?"),
        ("KAFKA", "security.protocol: TLS", 28, "security.protocol is 'TLS', it has to be one of PLAINTEXT"),
        (
            "KAFKA",
            "security.protocol: SSL, ssl.truststore.location: /x.jks",
            58,
            "ssl.truststore.location is a JKS store, which only Java reads",
        ),
        ("KAFKA", "request.timeout.ms: soon", 29, "it has to be a number of milliseconds"),
        ("KAFKA", "security.protocol: SASL_SSL, sasl.mechanism: PLAIN", 0, "needs a user and a password"),
    ],
)
def test_one_that_is_refused(part: str, options: str, column: int, message: str) -> None:
    (problem,) = _problems(**{part: options})
    assert message in problem
    assert problem.startswith(f"p.yaml:{_LINES[part]}:{column or ''}")


def test_every_one_is_found_at_once() -> None:
    found = _problems(
        KAFKA="secruity.protocol: SSL",
        SOURCE="minPartitions: lots, maxTask: 1, kafka.isolation.level: dirty",
        SINK="kafka.compression.type: zip, kafka.batch.size: big",
    )
    assert [problem.split(" ")[1] for problem in found] == [
        "kafka.secruity.protocol:",
        *["sources.orders:"] * 3,
        *["sinks.out:"] * 2,
    ]


def test_a_setting_for_all_clients_is_told_once() -> None:
    assert len(_problems(KAFKA="security.protocol: TLS")) == 1


def test_what_other_clients_have_passes() -> None:
    kafka = "security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.username: u, sasl.password: p"
    assert _problems(KAFKA=kafka, SINK="kafka.linger.ms: 5", SOURCE="kafka.max.poll.records: 5") == []


def test_a_password_is_in_no_problem() -> None:
    kafka = "security.protocol: SASL_SSL, sasl.mechanism: PLAINN, sasl.username: u, sasl.password: hidden"
    found = _problems(KAFKA=kafka)
    assert found
    assert "hidden" not in str(found)


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "GSSAPI"])
def test_exactly_once_with_a_mechanism_that_only_librdkafka_speaks(mechanism: str) -> None:
    login = f"security.protocol: SASL_SSL, sasl.mechanism: {mechanism}, sasl.oauthbearer.method: oidc"
    (problem,) = _problems(KAFKA=login)
    assert problem.startswith("p.yaml:3:")
    assert f"exactlyOnce does not go with the SASL mechanism {mechanism}" in problem
    assert "PLAIN, SCRAM-SHA-256" in problem
    (problem,) = _problems(SINK=f"kafka.{login.replace(', ', ', kafka.')}")
    assert problem.startswith("p.yaml:13:")
    assert f"exactlyOnce does not go with the SASL mechanism {mechanism}" in problem


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "GSSAPI"])
def test_at_least_once_with_a_mechanism_that_only_librdkafka_speaks(mechanism: str) -> None:
    login = f"kafka.security.protocol: SASL_SSL, kafka.sasl.mechanism: {mechanism}"
    assert _problems(SINK=f"{login}}}\n    exactly_once: false #") == []
    (problem,) = _problems(SINK=f"{login}, kafka.linger.ms: soon}}\n    exactly_once: false #")
    assert "kafka.linger.ms is 'soon'" in problem


def test_a_login_that_only_librdkafka_speaks_is_not_for_a_whole_pipeline() -> None:
    text = BASE.replace("dead_letters: p.dead\n", "").replace("options: {SINK}", "exactly_once: false")
    login = "security.protocol: SASL_SSL, sasl.mechanism: OAUTHBEARER"
    (problem,) = told(checked(parse(text.replace("KAFKA", login).replace("SOURCE", ""), "p.yaml")))
    assert problem.startswith("p.yaml:2:")
    assert "the SASL mechanism OAUTHBEARER is not for a whole pipeline" in problem
    assert "give this login to the sources, and to sinks with exactly_once: false, that need it" in problem


def test_the_login_of_a_source_may_be_one_that_only_librdkafka_speaks() -> None:
    login = "kafka.security.protocol: SASL_SSL, kafka.sasl.mechanism: OAUTHBEARER"
    assert _problems(SOURCE=login) == []
    (problem,) = _problems(SOURCE=f"{login}, kafka.default.api.timeout.ms: soon")
    assert "default.api.timeout.ms" in problem
