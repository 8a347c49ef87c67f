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
        ("SOURCE", "client: librdkafka", 15, "one client reads with every login; leave it out"),
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


_TOKEN_LOGIN = (
    "security.protocol: SASL_SSL, sasl.mechanism: OAUTHBEARER, sasl.oauthbearer.client.id: me, "
    "sasl.oauthbearer.client.secret: hidden, sasl.oauthbearer.token.endpoint.url: 'https://login.example/token'"
)


def test_a_login_with_a_token_is_for_a_whole_pipeline_and_for_its_parts() -> None:
    """Its sink is exactly once, and it has dead letters."""
    assert _problems(KAFKA=_TOKEN_LOGIN) == []
    of_a_part = f"kafka.{_TOKEN_LOGIN.replace(', ', ', kafka.')}"
    assert _problems(SOURCE=of_a_part, SINK=of_a_part) == []


def test_a_login_without_a_token_is_told_once() -> None:
    (problem,) = _problems(KAFKA="security.protocol: SASL_SSL, sasl.mechanism: OAUTHBEARER")
    assert problem.startswith("p.yaml:3:")
    assert "SASL OAUTHBEARER needs a token: set sasl.oauthbearer.token.endpoint.url" in problem


def test_kerberos_is_refused_once_with_what_is_there() -> None:
    (problem,) = _problems(KAFKA="security.protocol: SASL_SSL, sasl.mechanism: GSSAPI")
    assert problem.startswith("p.yaml:3:")
    assert "the SASL mechanism GSSAPI is not supported; set sasl.mechanism to PLAIN, SCRAM-SHA-256" in problem
