"""How `mainstem config` shows settings: those that a broker describes, and the declarations themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mainstem.cli.output.rendering import print_table
from mainstem.config.definition import NOT_ACTED_ON, ConfigSource, ConfigType, Scope, Setting, UpdateMode
from mainstem.config.tables import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from mainstem.wire import DescribedSetting

_NO_VALUE = "-"


def declared(names: Sequence[str], *, only_ignored: bool) -> list[Setting]:
    """The declarations of these names, in every scope that has one; all when none is given."""
    return [
        setting
        for table in (TOPIC_SETTINGS, BROKER_SETTINGS, GROUP_SETTINGS)
        for setting in table.values()
        if (not names or setting.name in names) and not (only_ignored and setting.acted_on)
    ]


def known_names() -> list[str]:
    return [*TOPIC_SETTINGS, *BROKER_SETTINGS, *GROUP_SETTINGS]


def show_declared(settings: Sequence[Setting]) -> None:
    """A table, or all there is to say when it is one setting."""
    if len(settings) == 1:
        (setting,) = settings
        _card(setting.name, declared_json(setting))
        return
    rows = [
        (
            setting.name,
            setting.scope.value,
            setting.type.name.lower(),
            _default(setting),
            "yes" if setting.dynamic else "no",
            "yes" if setting.acted_on else "no",
        )
        for setting in settings
    ]
    print_table(("setting", "of a", "type", "default", "live", "acted on"), rows)


def declared_json(setting: Setting) -> dict[str, Any]:
    """A declaration as `--json` prints it."""
    return {
        "name": setting.name,
        "scope": setting.scope.value,
        "type": setting.type.name.lower(),
        "default": _default(setting),
        "allowed": setting.allowed() or "anything of its type",
        "altered": _altered(setting),
        "acted_on": setting.acted_on,
        "inherits_from": setting.synonym,
        "doc": setting.doc,
    }


def show_described(settings: Sequence[DescribedSetting], scope: str, *, in_full: bool) -> None:
    """A table, or all there is to say about a setting."""
    if in_full and len(settings) == 1:
        (setting,) = settings
        _card(f"{setting.name} of {scope}", described_json(setting))
        return
    rows = [
        (
            setting.name,
            value_text(setting),
            _word(ConfigSource, setting.source),
            "no" if setting.read_only else "yes",
            "yes" if is_acted_on(setting) else "no",
        )
        for setting in settings
    ]
    print_table(("setting", "value", "from", "live", "acted on"), rows, title=f"Settings of {scope}")


def described_json(setting: DescribedSetting) -> dict[str, Any]:
    """A setting as `--json` prints it."""
    found = _declaration(setting)
    return {
        "name": setting.name,
        "value": setting.value,
        "type": _word(ConfigType, setting.type),
        "source": _word(ConfigSource, setting.source),
        "layers": [
            layer._asdict() | {"source": _word(ConfigSource, layer.source)} for layer in setting.layers
        ],
        "allowed": (found.allowed() if found is not None else "") or "anything of its type",
        "read_only": setting.read_only,
        "sensitive": setting.sensitive,
        "acted_on": is_acted_on(setting),
        "doc": setting.doc,
    }


def is_acted_on(setting: DescribedSetting) -> bool:
    """A Mainstem broker says in the documentation of a setting that it does not act on it."""
    return NOT_ACTED_ON not in setting.doc


def value_text(setting: DescribedSetting) -> str:
    if setting.sensitive:
        return "(hidden)"
    return _NO_VALUE if setting.value is None else setting.value


def settings_help(settings: Iterable[Setting]) -> str:
    """The settings, one a line, for the end of a help page."""
    width = max(len(setting.name) for setting in settings)
    lines = []
    for setting in settings:
        allowed = setting.allowed() or setting.type.name.lower()
        ignored = "" if setting.acted_on else " (not acted on)"
        lines.append(f"[not bold]  {setting.name:{width}}  {_escaped(allowed)}{ignored}[/not bold]")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")


def _card(title: str, facts: dict[str, Any]) -> None:
    print(title)
    for name, value in facts.items():
        if name == "name" or value is None:
            continue
        if name == "layers":
            for layer in value:
                shown = _NO_VALUE if layer["value"] is None else layer["value"]
                print(f"  {'given by':14} {layer['source']}: {layer['name']}={shown}")
            continue
        text = {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
        print(f"  {name.replace('_', ' '):14} {text}")


def _declaration(setting: DescribedSetting) -> Setting | None:
    for table in (TOPIC_SETTINGS, BROKER_SETTINGS, GROUP_SETTINGS):
        if setting.name in table:
            return table[setting.name]
    return None


def _default(setting: Setting) -> str:
    text = setting.format(setting.default)
    return _NO_VALUE if text is None else text


def _altered(setting: Setting) -> str:
    if setting.scope is not Scope.BROKER:
        return f"at any time, for one {setting.scope.value}"
    if not setting.dynamic:
        return "at the start only"
    if setting.update is UpdateMode.PER_BROKER:
        return "at any time, for one broker"
    return "at any time, for one broker or for all of them"


def _word(kind: type[ConfigType] | type[ConfigSource], code: int) -> str:
    """The name of a code in small letters; the code itself when it is newer than this program."""
    try:
        return kind(code).name.lower().removesuffix("_config").replace("_", " ")
    except ValueError:
        return str(code)
