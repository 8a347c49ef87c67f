"""Golden transcripts: what Apache Kafka answers to a list of requests, as text, checked in and compared.

A scenario runs against Apache Kafka and against Mainstem; both must give the transcript that stands in
`tests/interop/kafka_transcripts/recorded/`. Values that differ from run to run (names, ids, addresses, times)
are written as stand-ins, and texts for people only as present or absent. To record anew from Apache Kafka,
run the tests with MAINSTEM_RECORD_TRANSCRIPTS=1 and read the difference before committing it.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import ndiff
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import BatchHeader, read_header
from mainstem.records.compression import Codec
from mainstem.records.control import control_type_of
from mainstem.records.record import iter_records
from tests.support.target import Target
from tests.support.wire import WireClient

_SETTLED_SECONDS_MAX = 10
_FOLDER = Path(__file__).parents[1] / "interop" / "kafka_transcripts" / "recorded"
# Texts for people: each broker has its own words, and Mainstem has them where Kafka leaves them out.
_LEFT_OUT = {"throttle_time_ms", "error_message"}
_TEXTS = {"documentation", "batch_index_error_message"}
_TIMES = {"log_append_time_ms", "transaction_start_time_ms", "last_timestamp"}
_NODES = {"leader_id", "controller_id", "node_id", "broker_id", "replica_nodes", "isr_nodes", "resource_name"}
_ERROR_NAMES = {code.value: code.name for code in ErrorCode}


class Transcript:
    """Collects titles and answers of one run."""

    def __init__(self, target: Target, name: str) -> None:
        self._target = target
        self._path = _FOLDER / f"{name}.txt"
        self._lines: list[str] = []
        self._stand_ins: dict[Any, str] = {bytes(16): "<zero>"}

    @property
    def is_of_mainstem(self) -> bool:
        return self._target.is_mainstem

    def stand_in(self, value: str | bytes | int, name: str, field: str = "") -> Any:
        """Write `<name>` wherever this string, id or number stands alone in an answer. A number that is small
        needs the name of the field that it stands in.
        """
        self._stand_ins[(field, value) if field else value] = f"<{name}>"
        return value

    def note(self, title: str, answer: Any) -> None:
        """Add a request in words and what it was answered with: a response, or a plain text."""
        self._lines.append(f"## {title}")
        if isinstance(answer, str):
            self._lines.append(answer)
        else:
            self._lines += self._struct(answer, 0) or ["(all defaults)"]
        self._lines.append("")

    def note_when_settled(self, title: str, ask: Callable[[], Any]) -> None:
        """The same for the effect of a change. Apache Kafka's broker learns of it after its controller has
        answered, so it is asked until it gives the recorded answer; Mainstem is asked once.
        """
        deadline = time.monotonic() + _SETTLED_SECONDS_MAX
        recorded = self._path.read_text() if self._path.exists() else ""
        while True:
            before = len(self._lines)
            self.note(title, ask())
            is_settled = "\n".join(self._lines[before:]) in recorded
            if is_settled or self._target.is_mainstem or time.monotonic() > deadline:
                return
            del self._lines[before:]
            time.sleep(0.05)

    def check(self) -> None:
        text = "\n".join(self._lines)
        if os.environ.get("MAINSTEM_RECORD_TRANSCRIPTS") and not self._target.is_mainstem:
            _FOLDER.mkdir(exist_ok=True)
            self._path.write_text(text)
        differences = _differences(self._path.read_text(), text)
        assert not differences, f"{self._path.name}: - Apache Kafka, + {self._target.name}\n{differences}"

    def _struct(self, struct: Any, depth: int) -> list[str]:
        lines: list[str] = []
        for field in msgspec.structs.fields(struct):
            value = getattr(struct, field.name)
            is_empty = value == _default(field) and not self._is_stand_in(field.name, value)
            if field.name != "error_code" and (is_empty or _is_noise(struct, field.name, value)):
                continue
            lines += self._field(field.name, value, depth)
        return lines

    def _field(self, name: str, value: Any, depth: int) -> Iterator[str]:
        indent = "  " * depth
        if isinstance(value, msgspec.Struct):
            yield f"{indent}{name}:"
            yield from self._struct(value, depth + 1)
        elif isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
            yield f"{indent}{name}:"
            for element in value:
                lines = self._struct(element, depth + 2) or ["  " * (depth + 2) + "(all defaults)"]
                lines[0] = f"{indent}  - {lines[0].strip()}"
                yield from lines
        else:
            yield f"{indent}{name}: {self._text(name, value)}"

    def _is_stand_in(self, name: str, value: Any) -> bool:
        return isinstance(value, int) and (name, value) in self._stand_ins

    def _text(self, name: str, value: Any) -> str:
        if name.endswith("error_code"):
            return _ERROR_NAMES[value]
        if name in _TEXTS:
            return "<text>" if value else "<no text>"
        if name in _TIMES and value > 0:
            return "<time>"
        if name == "records":
            return describe_records(value)
        if isinstance(value, list):
            return f"[{', '.join(self._text(name, element) for element in value)}]"
        if name in _NODES and str(value) == str(self._target.node_id):
            return "<node>"
        for key in ((name, value), value):
            if key in self._stand_ins:
                return self._stand_ins[key]
        return "<another session>" if name == "session_id" else repr(value)


@contextmanager
def recorded(target: Target, name: str) -> Iterator[tuple[Transcript, WireClient]]:
    """A transcript and a connection for one scenario; at its end the two brokers are compared."""
    transcript = Transcript(target, name)
    with WireClient(target) as client:
        yield transcript, client
    transcript.check()


def _differences(expected: str, text: str) -> str:
    """The sections that differ, each under its title."""
    lines: list[str] = []
    sections, expected_sections = text.split("\n## "), expected.split("\n## ")
    for ours, theirs in zip_longest(sections, expected_sections, fillvalue=""):
        if ours.strip() != theirs.strip():
            lines.append(f"## {(theirs or ours).splitlines()[0].removeprefix('## ')}")
            compared = ndiff(theirs.splitlines()[1:], ours.splitlines()[1:])
            lines += [line for line in compared if line[0] != "?"]
    return "\n".join(lines)


def _is_noise(struct: Any, name: str, value: Any) -> bool:
    """Values that no client looks at, and in which the brokers may differ."""
    if name == "aborted_transactions":
        return value is None  # which means the same as an empty list
    if name == "log_start_offset":
        return bool(struct.error_code)
    return name in _LEFT_OUT


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def describe_records(data: Any) -> str:
    """The whole batches of a records field: offsets, codec or kind of marker, leader epoch.

    What follows the last whole one is left out: a broker may cut at the byte limit or at a batch, clients
    ignore the difference.
    """
    if data is None:
        return "null"
    data = bytes(data)
    batches: list[str] = []
    position = 0
    while position + 61 <= len(data):
        header = read_header(data, position)
        if position + header.size > len(data):
            break
        kind = _kind(header, data[position : position + header.size])
        last = header.base_offset + header.last_offset_delta
        batches.append(f"{header.base_offset}..{last} {kind} epoch {header.partition_leader_epoch}")
        position += header.size
    return f"[{', '.join(batches)}]"


def _kind(header: BatchHeader, batch: bytes) -> str:
    if header.is_control:
        marker = control_type_of(next(iter_records(batch)).key)
        name = marker.name.lower() if marker is not None else "unknown"
        return f"{name} marker of producer epoch {header.producer_epoch},"
    codec = Codec(header.attributes & 7).name.lower()
    return f"{codec} transactional" if header.is_transactional else codec
