"""Transcripts of offsets in transactions: what is committed by whom and when, and what comes out.

A file holds paragraphs. Each is a command, a line of dashes, and what came out:

    producer 7 commits g t-0=5
    ----
    t-0 NONE
    + g t-0 at 5 (version 4) by 7

Lines with `+` are records, `by 7` those of a producer's transaction. `offsets g` asks for the offsets of a
group whether stable or not, `stable g` only for stable ones. To write the outcomes anew, run the test with
MAINSTEM_RECORD_TRANSCRIPTS=1, and read the difference.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from tests.coordinator.txn_offset_world import TxnWorld
from tests.support.played_transcript import PlayedSession


class TxnOffsetsSession(PlayedSession):
    def __init__(self) -> None:
        self._world = TxnWorld()
        self._member = ""
        self._seen = 0
        self._commands: dict[str, Callable[[list[str]], Iterable[str]]] = {
            "producer": self._producer,
            "commit": self._commit,
            "offsets": lambda words: _offsets(self._world.fetch_all(words[0])),
            "stable": lambda words: _offsets(self._world.stable_all(words[0])),
            "stable-of": lambda words: _offsets({words[1]: self._world.stable(*words)}),
            "delete": self._delete,
            "delete-group": lambda words: [self._world.delete_group(words[0])],
            "join": self._join,
            "sync": lambda words: _quietly(partial(self._world.sync, words[0], self._member)),
            "topics": self._topics,
            "minutes": lambda words: _quietly(partial(self._world.advance_minutes, int(words[0]))),
            "restart": lambda words: _quietly(self._world.harness.restart),
            "appends": self._appends,
        }

    def outcome(self, command: str) -> Iterable[str]:
        name, *words = command.split()
        groups = self._world.groups()
        yield from self._commands[name](words)
        yield from self._records()
        yield from (f"group {group} is there" for group in sorted(self._world.groups() - groups))
        yield from (f"group {group} is gone" for group in sorted(groups - self._world.groups()))

    def _records(self) -> Iterable[str]:
        harness = self._world.harness
        for number, line in enumerate(self._world.log(self._seen), self._seen):
            producer = harness.producers.get(number)
            yield f"+ {line}" + ("" if producer is None else f" by {producer}")
        self._seen = len(harness.log)

    # ---- commands

    def _producer(self, words: list[str]) -> Iterable[str]:
        producer = int(words[0])
        if words[1] != "commits":
            self._world.end(producer, {"ends:commit": "commit", "ends:abort": "abort"}[words[1]])
            return
        topic, at = _positions(words[3:])
        fields = dict(word.split("=") for word in words[3:] if "-" not in word)
        generation = int(fields.pop("generation", "-1"))
        member = fields.pop("member", "")
        yield from self._errors(
            topic,
            self._world.txn_commit(
                producer,
                words[2],
                at,
                topic,
                generation=generation,
                member=self._member if member == "me" else member,
                **fields,
            ),
        )

    def _commit(self, words: list[str]) -> Iterable[str]:
        topic, at = _positions(words[1:])
        return self._errors(topic, self._world.commit(words[0], topic, at=at))

    def _delete(self, words: list[str]) -> Iterable[str]:
        places = [place.split("-") for place in words[1:]]
        topic = places[0][0]
        return self._errors(topic, self._world.delete(words[0], topic, *(int(n) for _, n in places)))

    def _join(self, words: list[str]) -> Iterable[str]:
        self._member = self._world.join(words[0], "u")
        return ["generation 1"]

    def _topics(self, words: list[str]) -> Iterable[str]:
        """`topics without t`, `topics with t`: it is deleted, or made anew."""
        if words[0] == "without":
            self._world.topics.delete(words[1])
        else:
            self._world.topics.create(words[1], 4)
        self._world.topics_changed()
        return ()

    def _appends(self, words: list[str]) -> Iterable[str]:
        self._world.harness.appends_fail = words[0] == "fail"
        return ()

    def _errors(self, topic: str, errors: dict[int, str] | str) -> Iterable[str]:
        if isinstance(errors, str):
            return [errors]
        return [f"{topic}-{index} {error}" for index, error in errors.items()]


def _quietly(action: Callable[[], None]) -> Iterable[str]:
    action()
    return ()


def _positions(words: list[str]) -> tuple[str, dict[int, int]]:
    """Of `t-0=5 t-1=6`: the topic, and the offsets by partition."""
    places = [word.split("=") for word in words if "-" in word]
    topic = places[0][0].split("-")[0]
    return topic, {int(place.split("-")[1]): int(offset) for place, offset in places}


def _offsets(found: Mapping[str, Mapping[int, int | str]]) -> Iterable[str]:
    return [
        f"{topic}-{index} {offset}"
        for topic, offsets in sorted(found.items())
        for index, offset in sorted(offsets.items())
    ]
