"""The sentence that a person can use is found in Spark's long reports."""

from mainstem.spark.pipeline.running.failures import failed, is_transient, sentence

_PYTHON = """\
[STREAM_FAILED] Query [id = 5e89, runId = 661c] terminated with exception: Job aborted due to stage failure
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 10, in main
    process()
  File "readers.py", line 3, in read
    raise OffsetsLost("x")
mainstem.spark.source.errors.OffsetsLostError: offsets 0 to 5 of orders-0 have aged out; set failOnDataLoss

	at org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""


def test_what_python_raised_last() -> None:
    assert sentence(_PYTHON) == "offsets 0 to 5 of orders-0 have aged out; set failOnDataLoss"
    theirs = _PYTHON.replace("mainstem.spark.source.errors.OffsetsLostError", "ValueError")
    assert sentence(theirs) == "ValueError: offsets 0 to 5 of orders-0 have aged out; set failOnDataLoss"


_NO_READER = """\
[STREAM_FAILED] Query [id = 5e89, runId = 661c] terminated with exception: Traceback (most recent call last):
  File "python_streaming_source_runner.py", line 258, in main
    reader = _streamReader(data_source, schema)
mainstem.spark.source.errors.OptionError: there is no option minPartitons; did you mean minPartitions?

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "python_streaming_source_runner.py", line 315, in main
    reader.stop()
UnboundLocalError: cannot access local variable 'reader' where it is not associated with a value
"""


def test_our_own_sentence_before_what_pyspark_stumbles_over_afterwards() -> None:
    assert sentence(_NO_READER) == "there is no option minPartitons; did you mean minPartitions?"
    theirs = _NO_READER.replace("mainstem.spark.source.errors.OptionError", "shop.NoSuchShopError")
    assert sentence(theirs) == "NoSuchShopError: there is no option minPartitons; did you mean minPartitions?"


def test_a_record_that_was_refused() -> None:
    text = "x\n[USER_RAISED_EXCEPTION] a record for orders cannot be used: not JSON SQLSTATE: P0001\n at y"
    assert sentence(text) == "a record for orders cannot be used: not JSON"


def test_conditions_and_causes_of_java() -> None:
    assert (
        sentence("[STREAM_FAILED] Query\n[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
        == "Division by zero."
    )
    assert sentence("a\nCaused by: java.io.IOException: No space left on device\n\tat b") == (
        "IOException: No space left on device"
    )
    assert sentence("An error occurred while calling o1.start.\n: java.io.IOException: No room\n\tat b") == (
        "IOException: No room"
    )
    assert sentence("plain words") == "plain words"
    assert sentence("") == "it failed without a word"


def test_a_checkpoint_that_cannot_be_read_is_named_with_the_ways_out() -> None:
    malformed = (
        "[STREAM_FAILED] Query [id = 0] terminated with exception: Failed to read log file "
        "file:/data/cp/out/offsets/4. [MALFORMED_LOG_FILE] Log file was malformed: failed to read correct "
        "log version from garbage. SQLSTATE: KD002 SQLSTATE: XXKST\n=== Streaming Query ==="
    )
    empty = (
        "terminated: Failed to read log file s3a://data/cp/out/commits/1. Incomplete log file SQLSTATE: XX"
    )
    no_json = (
        "terminated with exception: Unexpected character ('g' (code 103))\n"
        " at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 2]"
    )
    no_metadata = "An error occurred while calling o1.start.\n: x.JsonParseException: y\n\tat "
    no_metadata += (
        "org.apache.spark.sql.execution.streaming.runtime.StreamMetadata$.read(StreamMetadata.scala:60)"
    )
    for report, damaged in (
        (malformed, "/data/cp/out/offsets/4"),
        (empty, "s3a://data/cp/out/commits/1"),
        (no_json, "a file in /data/cp/out"),
        (no_metadata, "/data/cp/out/metadata"),
    ):
        failure = failed("out", report, "/data/cp/out")
        assert str(failure).startswith(f"out failed: its checkpoint is damaged: {damaged} cannot be read")
        assert failure.hint is not None
        assert failure.hint.startswith("restore it from a copy")
        assert "remove the folder /data/cp/out: out then starts where `from`" in failure.hint
    assert failed("out", _PYTHON, "/data/cp/out").hint is None


_STATE = "[STREAM_FAILED] Query [id = 0] terminated with exception: [CANNOT_LOAD_STATE_STORE."


def test_state_that_cannot_be_read_is_named_with_what_is_lost() -> None:
    loading = "An error occurred during loading state."
    folder = "file:/data/cp/out/state/0/1"
    provider = "of HDFSStateStoreProvider[x]"
    sizes = "expected 5 bytes, found 2 bytes."
    for report, trace, damaged in (
        (f"{_STATE}UNCATEGORIZED] {loading}  SQLSTATE: 58030", "", "a file in /data/cp/out/state"),
        (
            f"{_STATE}CANNOT_READ_DELTA_FILE_NOT_EXISTS] {loading} Error reading delta file {folder}/8.delta "
            f"{provider}: {folder}/8.delta does not exist. SQLSTATE: 58030",
            "",
            "/data/cp/out/state/0/1/8.delta",
        ),
        (
            f"{_STATE}CANNOT_READ_STREAMING_STATE_FILE] {loading} Error reading streaming state file of "
            f"{folder}/8.changelog does not exist. If the stream job is restarted",
            "",
            "/data/cp/out/state/0/1/8.changelog",
        ),
        (
            f"{_STATE}UNEXPECTED_FILE_SIZE] {loading} Copied {folder}/SSTs/5.sst to /tmp/x, {sizes}",
            "",
            "/data/cp/out/state/0/1/SSTs/5.sst",
        ),
        (
            "[STREAM_FAILED] Query [id = 0] terminated with exception:  SQLSTATE: XXKST",
            "Caused by: java.io.EOFException\n\tat org.apache.spark.sql.execution.streaming.state."
            "StateSchemaCompatibilityChecker$.readSchemaFile(StateSchemaCompatibilityChecker.scala:329)",
            "a schema in /data/cp/out/state",
        ),
        (
            "terminated with exception: [STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart",
            "",
            "/data/cp/out/state",
        ),
    ):
        failure = failed("out", report, "/data/cp/out", trace)
        assert str(failure).startswith(
            f"out failed: its checkpoint is damaged: {damaged} cannot be read, so "
        )
        assert "what out remembers of earlier records (open windows" in failure.reason
        assert failure.hint is not None
        assert failure.hint.startswith("restore it from a copy, and exactly once still holds. Or remove the")
        assert "All that it remembers is lost then" in failure.hint


def test_state_that_only_does_not_fit_into_memory_is_not_called_damaged() -> None:
    report = f"{_STATE}HDFS_STORE_PROVIDER_OUT_OF_MEMORY] An error occurred during loading state. No memory."
    failure = failed("out", report, "/data/cp/out")
    assert "damaged" not in str(failure)
    assert failure.hint is None


def test_two_runs_of_one_checkpoint_or_files_of_its_logs_gone() -> None:
    for report in (
        "terminated with exception: [CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log.",
        "terminated with exception: Multiple streaming queries are concurrently using file:/x/commits.",
    ):
        failure = failed("out", report, "/data/cp/out")
        assert "another run writes its checkpoint /data/cp/out at the same time, or files are" in str(failure)
        assert failure.hint is not None
        assert failure.hint.startswith("end the other run, and nothing is lost. If there is none")
        assert "remove the folder /data/cp/out" in failure.hint


def test_a_record_that_is_too_large_is_told_with_both_settings() -> None:
    for said in (
        "a record for the topic dead is 1048716 bytes when serialized which is larger than 1048576, which is "
        "the value of kafka.max.request.size: raise that option",
        "produce to dead-0: MESSAGE_TOO_LARGE: raise the topic's max.message.bytes, or set kafka.batch.size",
    ):
        failure = failed("out", f"x\nmainstem.spark.sink.errors.SinkError: {said}\n", "/data/cp/out")
        assert failure.reason == said
        assert failure.hint is not None
        assert "write `kafka: {max.request.size: BYTES}` into the pipeline's file" in failure.hint
        assert "--config max.message.bytes=BYTES" in failure.hint
        assert "nothing is lost" in failure.hint


def test_only_what_goes_away_by_itself_is_tried_again() -> None:
    assert is_transient("SparkException: Python worker failed to connect back.")
    assert is_transient("mainstem.wire.errors.NoBrokerAnswers: no broker answers at localhost:9092")
    assert not is_transient(_PYTHON)
