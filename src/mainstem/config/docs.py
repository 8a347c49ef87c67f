"""Writes docs/configuration.md from the declarations: `python -m mainstem.config.docs docs/configuration.md`.

The page says nothing about a setting that its declaration does not say. Without an argument it is printed.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mainstem.config.definition import INT64_MAX, Scope, Setting, UpdateMode
from mainstem.config.tables import BROKER_GROUPS, GROUP_SETTINGS, TOPIC_SETTINGS

_HEAD = """\
# Settings

Mainstem's settings carry the names, types, defaults and ranges of Apache Kafka 4.3, so an existing
`server.properties` starts it: `mainstem up --config server.properties`. A single one is given with
`--set name=value`, which wins over the file.

- A name in the file that Kafka does not know, or that Mainstem does not act on yet, draws a warning when the
  broker starts. With `--set`, an unknown name is an error.
- A setting that would protect something and that Mainstem cannot honour yet (`ssl.*`, `sasl.*`, an
  authorizer, a listener that is not `PLAINTEXT`) keeps it from starting, and cannot be set while it runs.
- `replication.factor` is understood as `default.replication.factor`, and `unclean.leader.election` as
  `unclean.leader.election.enable`.

*Acted on* says whether Mainstem does what the setting asks for. *Altered* says whether a running broker takes
a new value: for one broker (`per-broker`), also for all brokers at once (`cluster-wide`), or not at all
(`read-only`).
This page is made from the declarations in `src/mainstem/config/tables` by `python -m mainstem.config.docs`.

## Settings of a running broker

Settings of topics, of groups and of brokers that are not `read-only` are altered with `mainstem config
set`, with Kafka's `kafka-configs`, or with any client's IncrementalAlterConfigs. A change is in force when
the answer comes, and it survives restarts. Of several values the first of these counts: the topic's or
group's own, the one for this broker, the one for all brokers, the file or `--set`, the default. `mainstem
config describe NAME --topic TOPIC` shows all of them.

- A value that a setting cannot have is refused, with what is allowed: `INVALID_CONFIG` for topics and
  groups, `INVALID_REQUEST` for brokers, as Kafka does it. A request changes all that it names, or nothing.
- Values that contradict each other are refused too: `max.connections=0`, or a least that is greater than the
  most. What counts is the outcome of all changes of a broker, topic or group in a request, also of those
  that take a value back. Numbers have to be finite; Kafka takes `NaN` and `Infinity`.
- An altered value that is kept from before and that the broker would refuse now, because of another version
  or of another file, counts as not given: the broker starts, serves, and logs a warning until it is unset.
- `log.cleaner.threads` can be set to any number for which the memory suffices; Kafka refuses more than
  double and less than half of the present one. 0 rests compaction while the broker runs, which
  `log.cleaner.enable` cannot do; Kafka refuses it.
- A name that Kafka does not know is refused, with the nearest that it does. For brokers Kafka keeps such
  names, for its plug-ins; Mainstem has none, so it could only be a typing error.
- A setting that Mainstem does not act on is kept and shown, because programs written for Kafka set such
  values as a matter of course and stop when they are refused. It is never kept without a word: the broker
  logs a warning, `mainstem config set` prints one, the setting's documentation in DescribeConfigs ends with
  "Mainstem does not act on this setting.", and `mainstem config describe --not-acted-on` lists all of them.
  Those that would protect something, and `remote.storage.enable=true`, are refused instead: to go on
  without them would lose what they were set for.
"""

_TOPIC_HEAD = """\
## Topics

A topic without a setting of its own takes the broker's. Any of these can be given when a topic is created and
altered later.

| Setting | Type | Default | Allowed | From the broker's | Acted on | What it is |
| --- | --- | --- | --- | --- | --- | --- |
"""

_GROUPS_HEAD = """\
## Groups

A group without a setting of its own takes the broker's. Any of these can be altered for one group, within the
broker's bounds (`group.consumer.min.session.timeout.ms` and so on).

| Setting | Type | Default | Allowed | From the broker's | Acted on | What it is |
| --- | --- | --- | --- | --- | --- | --- |
"""

_SUBJECT_HEAD = """\
| Setting | Type | Default | Allowed | Altered | Acted on | What it is |
| --- | --- | --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    return "".join(_parts())


def _parts() -> Iterator[str]:
    yield _HEAD
    yield f"\n{_TOPIC_HEAD}"
    yield from _rows(TOPIC_SETTINGS.values())
    yield f"\n{_GROUPS_HEAD}"
    yield from _rows(GROUP_SETTINGS.values())
    for title, settings in BROKER_GROUPS:
        yield f"\n## {title}\n\n{_SUBJECT_HEAD}"
        yield from _rows(settings)


def _rows(settings: Iterable[Setting]) -> Iterator[str]:
    for setting in settings:
        cells = (
            f"`{setting.name}`",
            setting.type.name.lower(),
            _default(setting),
            setting.allowed().replace("|", "\\|"),
            _altered(setting) if setting.scope is Scope.BROKER else _inheritance(setting),
            "yes" if setting.acted_on else "no",
            setting.doc,
        )
        yield "| " + " | ".join(cells) + " |\n"


def _altered(setting: Setting) -> str:
    return setting.update.value if setting.dynamic else UpdateMode.READ_ONLY.value


def _inheritance(setting: Setting) -> str:
    return f"`{setting.synonym}`" if setting.synonym else ""


def _default(setting: Setting) -> str:
    if setting.default == INT64_MAX:
        return "no limit"
    text = setting.format(setting.default)
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
