"""Writes the pages about settings from the declarations: `python -m mainstem.config.docs docs`.

docs/configuration.md has the settings that are acted on, docs/configuration-others.md the rest. The pages say
nothing about a setting that its declaration does not say.
"""

import sys
from collections.abc import Iterator
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

This page has the settings that Mainstem acts on. The others, which are kept and shown but change nothing or
are refused, are in [configuration-others.md](configuration-others.md). *Altered* says whether a running
broker takes a new value: for one broker (`per-broker`), also for all brokers at once (`cluster-wide`), or not
at all (`read-only`).
Both pages are made from the declarations in `src/mainstem/config/tables` by
`python -m mainstem.config.docs docs`.

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

_OTHERS_HEAD = """\
# Settings that are not acted on

Apache Kafka 4.3 has these settings too. Mainstem knows their types, defaults and ranges, checks, keeps and
shows them, and does not do what they ask for; a warning says so when one is given. Those that would protect
something, and `remote.storage.enable=true`, are refused instead. The settings that are acted on, and how
settings are given and altered, are in [configuration.md](configuration.md).
"""

_TOPICS = """\
A topic without a setting of its own takes the broker's. Any of these can be given when a topic is created and
altered later.
"""

_GROUPS = """\
A group without a setting of its own takes the broker's. Any of these can be altered for one group, within the
broker's bounds (`group.consumer.min.session.timeout.ms` and so on).
"""


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    return {
        "configuration.md": _HEAD + "".join(_subjects(acted_on=True)),
        "configuration-others.md": _OTHERS_HEAD + "".join(_subjects(acted_on=False)),
    }


def _subjects(*, acted_on: bool) -> Iterator[str]:
    groups = [("Topics", _TOPICS, tuple(TOPIC_SETTINGS.values()))]
    groups.append(("Groups", _GROUPS, tuple(GROUP_SETTINGS.values())))
    groups.extend((title, "", settings) for title, settings in BROKER_GROUPS)
    for title, text, declared in groups:
        settings = [setting for setting in declared if setting.acted_on is acted_on]
        if settings:
            yield f"\n## {title}\n\n{text}" + ("\n" if text else "") + _table(settings)


def _table(settings: list[Setting]) -> str:
    origin = "Altered" if settings[0].scope is Scope.BROKER else "From the broker's"
    rows = [("Setting", "Type", "Default", "Allowed", origin, "What it is"), ("---",) * 6]
    rows.extend(
        (
            f"`{setting.name}`",
            setting.type.name.lower(),
            _default(setting),
            setting.allowed().replace("|", "\\|"),
            _altered(setting) if setting.scope is Scope.BROKER else _inheritance(setting),
            setting.doc,
        )
        for setting in settings
    )
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


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
    for _name, _text in pages().items():
        (Path(sys.argv[1]) / _name).write_text(_text, encoding="utf-8")
