"""Finds the sentence in Spark's long reports of failure that a person can use, and what to do where that is
known. No Spark here."""

from __future__ import annotations

import re

_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\]\s*(.+?)(?:\s+SQLSTATE: \w+)?$", re.M)
_PYTHON_KINDS = "Error|Exception|Refusal|Lost|Gone|Option|Answers|Progress|Range|Served"
_PYTHON = re.compile(rf"^(?:[\w.]+\.)?(\w*(?:{_PYTHON_KINDS})): (.+)$", re.M)
# Errors of this project are sentences already and need no class name before them.
_OURS = re.compile(r"^(?:pyspark_)?mainstem\.[\w.]+: (.+)$", re.M)
# PySpark's process for a stream's offsets fails like this at its end when the reader was not made at all.
_NO_READER = "cannot access local variable 'reader'"
_JAVA_CAUSE = re.compile(r"^(?:Caused by)?: ([\w.$]+): (.+)$", re.M)
_CONDITION = re.compile(r"\[([A-Z][A-Z_.0-9]+)\]\s*(.+?)(?:\s+SQLSTATE: \w+)?$", re.M)
_WRAPPERS = (
    "STREAM_FAILED",
    "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR",
    "FOREACH_BATCH_USER_FUNCTION_ERROR",
    "PYTHON_DATA_SOURCE_ERROR",
    "TASK_WRITE_FAILED",
)
_IGNORED = ("Py4JJavaError", "PythonException", "Py4JError")

_NOT_READ = re.compile(r"Failed to read log file (?:file:(?:///?)?(?=/))?(\S+?)\. ")
_METADATA = "StreamMetadata$.read("
# Java's reader of JSON says no more than this; nothing but the files of a checkpoint is read by it.
_NOT_JSON = "at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"

# What Spark says of state that it cannot load; some of it is not about files.
_STATE = re.compile(r"\[CANNOT_LOAD_STATE_STORE\.(\w+)\]")
_STATE_IS_WHOLE = ("OUT_OF_MEMORY", "THREAD_ERROR", "_VERSION", "VALIDATION_FAILURE", "WRITER")
_STATE_FILE = re.compile(r"(?:\bfile|\bfile of|Copied) (?:file:(?:///?)?(?=/))?(\S+/state/\d\S*)")
_STATE_SCHEMA = "StateSchemaCompatibilityChecker$.readSchemaFile("
_NO_STATE = "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY]"
# Spark says the same when files of the logs are gone.
_TWO_RUNS = ("[CONCURRENT_STREAM_LOG_UPDATE]", "Multiple streaming queries are concurrently using ")

_TOO_LARGE = ("kafka.max.request.size", "raise the topic's max.message.bytes")
_LARGER = (
    "write `kafka: {max.request.size: BYTES}` into the pipeline's file, and raise the topic's limit with "
    "`mainstem topics alter TOPIC --config max.message.bytes=BYTES`; nothing is lost: a restart goes on "
    "where it was"
)


class RunFailed(Exception):
    """A query of the pipeline failed. Without a hint, nothing is lost, and a restart goes on where it was."""

    def __init__(self, query: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{query} failed: {reason}")
        self.query = query
        self.reason = reason
        self.hint = hint


def failed(query: str, report: str, checkpoint: str, trace: str = "") -> RunFailed:
    """The failure that Spark's report of a query tells of, with Java's trace where the report has none;
    `checkpoint` is the query's folder."""
    start_anew = (
        f"remove the folder {checkpoint}: {query} then starts where `from` of its sources says, and what it "
        "reads a second time is written a second time (with a later `from`, what lies between is left out); "
        "the other sinks go on where they were"
    )
    restore = "restore it from a copy, and exactly once still holds"
    if (damaged := _damaged_state(report, trace, checkpoint)) is not None:
        return RunFailed(
            query,
            f"its checkpoint is damaged: {damaged} cannot be read, so what {query} remembers of earlier "
            "records (open windows, keys that it has seen) is not known",
            f"{restore}. Or {start_anew}. All that it remembers is lost then, also of records that are not "
            "read again. Steps with a state that were added or changed since the last run need a new folder, "
            "too",
        )
    if (damaged := _damaged_file(report, checkpoint)) is not None:
        lost = f"{damaged} cannot be read, so it is not known how far {query} has got"
        return RunFailed(query, f"its checkpoint is damaged: {lost}", f"{restore}. Or {start_anew}")
    if any(mark in report for mark in _TWO_RUNS):
        return RunFailed(
            query,
            f"another run writes its checkpoint {checkpoint} at the same time, or files are missing in its "
            "folders offsets and commits",
            "end the other run, and nothing is lost. If there is none, the checkpoint is damaged: restore "
            f"it from a copy. Or {start_anew}",
        )
    reason = sentence(report)
    return RunFailed(query, reason, _LARGER if any(mark in reason for mark in _TOO_LARGE) else None)


def _damaged_state(report: str, trace: str, checkpoint: str) -> str | None:
    """What Spark cannot read of a query's state; a folder where it does not say which file."""
    if _NO_STATE in report:
        return f"{checkpoint}/state"
    if _STATE_SCHEMA in report or _STATE_SCHEMA in trace:
        return f"a schema in {checkpoint}/state"
    said = _STATE.search(report)
    if said is None or said[1].endswith(_STATE_IS_WHOLE):
        return None
    file = _STATE_FILE.search(report, said.end())
    return file[1].rstrip(":.") if file is not None else f"a file in {checkpoint}/state"


def _damaged_file(report: str, checkpoint: str) -> str | None:
    """What Spark cannot read of a checkpoint; a folder where it does not say which file."""
    if (match := _NOT_READ.search(report)) is not None:
        return match[1]
    if _METADATA in report:
        return f"{checkpoint}/metadata"
    return f"a file in {checkpoint}" if _NOT_JSON in report else None


def sentence(text: str) -> str:
    """The cause in a report: what a record was refused for, what we or else Python raised last, or Java's
    first cause."""
    raised = _RAISED.findall(text) or _OURS.findall(text)
    if raised:
        return _without_state(raised[-1])
    python = [
        f"{kind}: {_without_state(said)}"
        for kind, said in _PYTHON.findall(text)
        if kind not in _IGNORED and not said.startswith(_NO_READER)
    ]
    if python:
        return python[-1]
    conditions = [said for name, said in _CONDITION.findall(text) if not name.startswith(_WRAPPERS)]
    if conditions:
        return str(conditions[0]).strip()
    causes = _JAVA_CAUSE.findall(text)
    if causes:
        kind, said = causes[-1]
        return f"{kind.rpartition('.')[2]}: {said.strip()}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "it failed without a word"


# What goes away by itself: a machine too busy to start a worker in time, a broker that restarts.
_TRANSIENT = (
    "Python worker failed to connect back",
    "Python worker exited unexpectedly",
    "Timed out while waiting for the Python worker",
    "NoBrokerAnswers:",
    "ConnectionLost:",
    "NoProgress:",
    "TokenUnavailable:",
)


def is_transient(text: str) -> bool:
    """Whether a query that failed like this may do better when it is started again."""
    return any(mark in text for mark in _TRANSIENT)


def _without_state(said: str) -> str:
    return re.sub(r"\s*SQLSTATE: \w+", "", said.strip())
