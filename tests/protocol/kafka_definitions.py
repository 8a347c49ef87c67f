"""Kafka's own message definitions, JSON in its jars, and our layouts, both as lines that can be compared."""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from mainstem.protocol.layout import Array, Nested, StructLayout
from mainstem.protocol.schema import Wire, parse_versions
from tests.protocol.messages import OWN_TAGS
from tests.support.kafka_peer import JARS, KAFKA_VERSION

_COMMENT = re.compile(r"(^|\s)//.*$", re.MULTILINE)
_NO_DEFAULT = {"bool": False, "string": "", "bytes": b"", "uuid": bytes(16), "float64": 0.0}
# Messages are made with all their records, so that what stands for none is never asked for.
_WITHOUT_DEFAULT = "records"


@cache
def definitions(jar: str, folder: str) -> Mapping[str, Any]:
    """By name, what a jar defines in one of its folders."""
    with zipfile.ZipFile(JARS / f"{jar}-{KAFKA_VERSION}.jar") as archive:
        names = [name for name in archive.namelist() if name.startswith(folder) and name.endswith(".json")]
        found = [json.loads(_COMMENT.sub("", archive.read(name).decode())) for name in names]
    return {definition["name"]: definition for definition in found}


def lines_of_definition(definition: Mapping[str, Any], version: int) -> list[str]:
    structs = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", ())}
    flexible = version in parse_versions(definition.get("flexibleVersions", "none"))
    return [f"flexible: {flexible}", *_defined(definition["fields"], structs, version, "")]


def _defined(
    fields: list[Mapping[str, Any]], structs: Mapping[str, Any], version: int, path: str
) -> Iterator[str]:
    for field in fields:
        if version not in parse_versions(field["versions"]):
            continue
        name, kind = path + field["name"].lower(), field["type"].removeprefix("[]")
        tag = field["tag"] if version in parse_versions(field.get("taggedVersions", "none")) else None
        nullable = version in parse_versions(field.get("nullableVersions", "none"))
        inner = field.get("fields") or structs.get(kind)
        default = None if inner or kind != field["type"] else _default(kind, field.get("default"))
        yield _line(
            name,
            field["type"] if inner is None else field["type"].replace(kind, "struct"),
            nullable,
            tag,
            default,
        )
        if inner:
            yield from _defined(inner, structs, version, f"{name}.")


def _default(kind: str, text: Any) -> Any:
    if text == "null" or kind == _WITHOUT_DEFAULT:
        return None
    if text is None:
        return _NO_DEFAULT.get(kind, 0)
    if kind == "bool":
        return str(text) == "true"
    return text if kind == "string" else int(str(text), 0)


def lines_of_layout(layout: StructLayout) -> list[str]:
    return [f"flexible: {layout.flexible}", *_declared(layout, "")]


def _declared(layout: StructLayout, path: str) -> Iterator[str]:
    for field in layout.fields:
        if not field.present or (field.tag is not None and field.tag >= OWN_TAGS):
            continue
        name = path + field.name.replace("_", "")
        element = field.type.element if isinstance(field.type, Array) else field.type
        kind = element.name if isinstance(element, Wire) else "struct"
        prefix = "[]" if isinstance(field.type, Array) else ""
        default = None if prefix or kind in ("struct", _WITHOUT_DEFAULT) else field.default
        yield _line(name, prefix + kind, field.nullable, field.tag, default)
        if isinstance(element, Nested):
            yield from _declared(element.layout, f"{name}.")


def _line(name: str, kind: str, nullable: bool, tag: int | None, default: Any) -> str:
    return f"{name}: {kind}{' or null' * nullable}, tag {tag}, {default!r}"
