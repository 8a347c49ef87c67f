"""The options of a read are those of Spark's own connector; what it refuses is refused, in clear words."""

import logging

import pytest

from mainstem.spark.source.errors import OptionError
from mainstem.spark.source.limits import AtOffsets, AtTimestamp, AtTimestamps, Earliest, Latest
from mainstem.spark.source.options import Kind, ReadOptions, Subscription, check_general, parse_options

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def parse(kind: Kind = "batch", /, **options: str) -> ReadOptions:
    return parse_options({**BASE, **options}, kind)


def test_the_defaults_are_those_of_sparks_connector() -> None:
    options = parse("batch")
    assert (options.starting, options.ending) == (Earliest(), Latest())
    assert parse("stream").starting == Latest()
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.isolation == 0
    assert options.max_trigger_delay_ms == 15 * 60 * 1000
    assert (options.lookup_attempts, options.lookup_interval_ms, options.poll_timeout_ms) == (
        3,
        1000,
        120_000,
    )
    assert options.subscription == Subscription(topics=("orders",))


def test_names_do_not_depend_on_case_and_values_may_have_blanks() -> None:
    options = parse_options(
        {
            "KAFKA.bootstrap.servers": "a:1",
            "SUBSCRIBE": " a , b,,a ",
            "STARTINGOFFSETS": " Earliest ",
            "FailOnDataLoss": "FALSE",
            "kafka.isolation.level": "READ_COMMITTED",
            "maxTriggerDelay": "2 min",
        },
        "stream",
    )
    assert options.subscription.topics == ("a", "b")
    assert options.starting == Earliest()
    assert (options.fail_on_data_loss, options.isolation, options.max_trigger_delay_ms) == (False, 1, 120_000)
    assert options.kafka["bootstrap.servers"] == "a:1"


def test_limits_prefer_one_timestamp_then_timestamps_then_offsets() -> None:
    offsets, timestamps = '{"orders":{"0":23,"1":-2}}', '{"orders":{"0":1000,"1":2000}}'
    everything = {
        "startingOffsets": offsets,
        "startingOffsetsByTimestamp": timestamps,
        "startingTimestamp": "5",
    }
    assert parse(**everything).starting == AtTimestamp(5)
    del everything["startingTimestamp"]
    everything["startingOffsetsByTimestampStrategy"] = "Latest"
    assert parse(**everything).starting == AtTimestamps({("orders", 0): 1000, ("orders", 1): 2000}, "latest")
    assert parse(startingOffsets=offsets).starting == AtOffsets({("orders", 0): 23, ("orders", 1): -2})


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("batch", {"startingOffsets": "latest"}, "startingOffsets can't be latest for batch queries"),
        ("batch", {"endingOffsets": "earliest"}, "endingOffsets can't be earliest for batch queries"),
        ("batch", {"startingOffsets": '{"orders":{"0":-1}}'}, "orders-0 can't be latest"),
        ("batch", {"endingOffsets": '{"orders":{"0":-2}}'}, "orders-0 can't be earliest"),
        ("stream", {"endingOffsets": "latest"}, "endingOffsets is not valid in streaming queries"),
        ("stream", {"endingTimestamp": "1"}, "endingTimestamp is not valid in streaming queries"),
        ("stream", {"endingOffsetsByTimestamp": "{}"}, "not valid in streaming queries"),
        ("stream", {"startingOffsets": "{}"}, "startingOffsets names no partition"),
        ("batch", {"startingOffsets": '{"orders":{}}'}, "startingOffsets names no partition"),
        (
            "batch",
            {"endingOffsets": "{}"},
            "endingOffsets names no partition: it must name all",
        ),
        ("stream", {"startingOffsetsByTimestamp": "{}"}, "startingOffsetsByTimestamp names no partition"),
        ("batch", {"endingOffsetsByTimestamp": "{}"}, "for all of them there is endingTimestamp"),
        (
            "batch",
            {"startingOffsets": "{"},
            '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got {',
        ),
        ("batch", {"startingOffsets": '{"orders":{"0":"x"}}'}, "expected e.g."),
        ("batch", {"startingOffsets": '{"orders":{"0":-3}}'}, "use -1 for latest, -2 for earliest"),
        ("batch", {"startingTimestamp": "yesterday"}, "startingTimestamp is 'yesterday'"),
        ("batch", {"startingOffsetsByTimestampStrategy": "guess"}, "has to be error or latest"),
        ("batch", {"minPartitions": "0"}, "minPartitions must be positive"),
        ("batch", {"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition must be positive"),
        ("batch", {"minPartitions": "many"}, "minPartitions is 'many', it has to be a whole number"),
        ("batch", {"failOnDataLoss": "no"}, "failOnDataLoss is 'no', it has to be true or false"),
        ("stream", {"maxTriggerDelay": "soon"}, "maxTriggerDelay is 'soon'"),
        (
            "stream",
            {"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "5"},
            r"minOffsetsPerTrigger (10) is higher than maxOffsetsPerTrigger (5)",
        ),
        (
            "batch",
            {"kafka.auto.offset.reset": "earliest"},
            "Set startingOffsets to 'earliest'",
        ),
        ("batch", {"kafka.key.deserializer": "x"}, "keys are read as bytes"),
        ("batch", {"kafka.value.deserializer": "x"}, "values are read as bytes"),
        ("batch", {"kafka.enable.auto.commit": "true"}, "'kafka.enable.auto.commit' is not supported"),
        ("batch", {"kafka.interceptor.classes": "x"}, "'kafka.interceptor.classes' is not supported"),
        ("batch", {"kafka.isolation.level": "serializable"}, "read_uncommitted or read_committed"),
        (
            "batch",
            {"startingOffset": "earliest"},
            "'startingOffset' does not exist; did you mean",
        ),
        ("batch", {"kafka.isolation.lvl": "x"}, "did you mean kafka.isolation.level?"),
        ("batch", {"bootstrap.servers": "a:1"}, "did you mean kafka.bootstrap.servers?"),
        ("batch", {"bootstrap.server": "a:1"}, "did you mean kafka.bootstrap.servers?"),
        ("batch", {"Isolation.Level": "x"}, "did you mean kafka.isolation.level?"),
        ("batch", {"sasl.jaas.config": "x"}, "did you mean kafka.sasl.jaas.config?"),
        ("batch", {"session.timeout.ms": "x"}, "kafka."),
        ("batch", {"fetchOffset.numRetry": "x"}, "did you mean fetchOffset.numRetries?"),
        ("batch", {"no.such.thing": "x"}, "the options of Kafka's client begin with kafka."),
        ("batch", {"client": "librdkafka"}, "one client reads with every login; leave it out"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(kind: Kind, options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as refused:
        parse_options({**BASE, **options}, kind)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "one of the options subscribe, subscribePattern, assign must be set"),
        ({"subscribe": "a", "assign": "{}"}, "only one of the options subscribe"),
        ({"subscribe": " , "}, "it names no topic"),
        ({"subscribePattern": " "}, "subscribePattern is empty"),
        ({"subscribePattern": "("}, "no regular expression"),
        ({"assign": "orders"}, 'expected e.g. {"topicA":[0,1],"topicB":[0,1]}'),
        ({"assign": '{"orders":[-1]}'}, "expected e.g."),
    ],
)
def test_exactly_one_way_to_name_topics(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as refused:
        parse_options({"kafka.bootstrap.servers": "a:1", **options}, "batch")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("[a-z&&[^e]]", r"&& within [...] is of Java's regular expressions"),
        ("[a-z&&x]+", "&& within [...]"),
        ("[a[bc]]", "write one class with all characters"),
        ("[[:alpha:]]", "[ within [...]"),
        (r"\Qa.b\E", "write a backslash before each character"),
        (r"a\h", "no topic has blanks"),
        (r"\p{Alpha}+", "such as [A-Za-z]"),
        ("(?<name>a)", "write (?P<name>"),
    ],
)
def test_a_pattern_that_only_java_understands_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(OptionError) as refused:
        parse_options({"kafka.bootstrap.servers": "a:1", "subscribePattern": pattern}, "batch")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "pattern",
    ["orders.*", r"a&&b", r"[\[a&]", "[]a]", "[^]a]", "a++", "(?>a|b)", "(?<=a)b(?<!c)", r"\\Q"],
)
def test_patterns_that_both_understand(pattern: str) -> None:
    found = parse_options({"kafka.bootstrap.servers": "a:1", "subscribePattern": pattern}, "batch")
    assert found.subscription.pattern == pattern


def test_the_servers_must_be_named() -> None:
    with pytest.raises(OptionError, match=r"'kafka.bootstrap.servers' must be set"):
        parse_options({"subscribe": "orders"}, "batch")


def test_start_and_end_of_partitions_must_fit() -> None:
    with pytest.raises(OptionError, match="must name the same partitions: only the start has orders-1"):
        parse(startingOffsets='{"orders":{"0":1,"1":1}}', endingOffsets='{"orders":{"0":5}}')
    with pytest.raises(
        OptionError, match="starting offset 9 of orders-0 is greater than its ending offset 5"
    ):
        parse(startingOffsets='{"orders":{"0":9}}', endingOffsets='{"orders":{"0":5}}')
    with pytest.raises(OptionError, match="starting timestamp 9"):
        parse(startingOffsetsByTimestamp='{"orders":{"0":9}}', endingOffsetsByTimestamp='{"orders":{"0":5}}')
    assert parse(startingOffsets='{"orders":{"0":9}}', endingOffsets='{"orders":{"0":-1}}')


def test_what_is_only_unusual_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        parse("batch", **{"maxOffsetsPerTrigger": "5", "groupIdPrefix": "x", "kafka.group.id": "mine"})
        parse("batch", **{"kafka.a.name.of.the.future": "x"})
    assert [record.getMessage() for record in caplog.records] == [
        "groupIdPrefix is ignored because kafka.group.id is set",
        "maxOffsetsPerTrigger is ignored in batch queries",
    ]


def test_the_options_of_a_write_may_be_there() -> None:
    assert parse("stream", topic="out", checkpointLocation="somewhere").subscription.topics == ("orders",)


def test_loading_finds_what_is_wrong_for_batches_and_streams_alike() -> None:
    assert check_general({**BASE, "endingOffsets": "latest", "includeHeaders": "true"}).include_headers
    with pytest.raises(OptionError, match="did you mean subscribe"):
        check_general({"kafka.bootstrap.servers": "a:1", "subscribes": "x"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffsets": "erliest"}, "startingOffsets is 'erliest'.*did you mean earliest"),
        ({"endingOffsets": "lattest"}, "endingOffsets is 'lattest'.*did you mean latest"),
        ({"STARTINGOFFSETS": "{"}, "startingOffsets: expected e.g."),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp is 'yesterday'"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "has to be error or latest"),
        ({"endingOffsetsByTimestamp": "[]"}, "endingOffsetsByTimestamp: expected e.g."),
    ],
)
def test_loading_finds_limits_that_are_wrong_for_batches_and_streams_alike(
    options: dict[str, str], words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        check_general({**BASE, **options})


def test_loading_leaves_limits_that_only_a_batch_or_a_stream_may_have() -> None:
    check_general({**BASE, "startingOffsets": "latest", "endingOffsets": "earliest"})


def test_no_password_shows_in_the_options() -> None:
    options = parse(**{"kafka.sasl.password": "secret"})
    assert "secret" not in repr(options)
