"""Schemas that a pipeline declares, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import NamedTuple

from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.ddl import Schema


class SchemaError(ValueError):
    """No columns can be made of what is given; `field` is the key of `decode` at fault."""

    def __init__(
        self, message: str, field: str, hint: str | None = None, inside: tuple[int, int] | None = None
    ) -> None:
        super().__init__(message)
        self.field = field
        self.hint = hint
        self.inside = inside


class Definition(NamedTuple):
    """A schema as the decoders need it: its columns, and what its format knows of it besides."""

    columns: Schema
    schema: str | bytes | None = None


def parse_ddl(text: str, field: str) -> Schema:
    """The columns of a DDL text, its error with the place in it."""
    try:
        return ddl.parse(text)
    except ddl.DdlError as error:
        before = text[: error.position]
        inside = (before.count("\n"), error.position - (before.rfind("\n") + 1))
        raise SchemaError(error.message, field, error.hint, inside if field == "schema" else None) from None


def read_bytes(name: str, folder: FilePath, field: str) -> bytes:
    """A file that a pipeline names, relative to the folder of the pipeline's file."""
    try:
        return (folder / FilePath(name).expanduser()).read_bytes()
    except OSError as error:
        raise SchemaError(f"{name} cannot be read: {(error.strerror or str(error)).lower()}", field) from None
