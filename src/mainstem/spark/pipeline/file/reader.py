"""Reads a pipeline from a YAML file, keeping the place of every part for the messages about it.

A Python file may hold a pipeline as well: a variable `pipeline`, or another named after a colon. No Spark
here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import yaml

from mainstem.spark.pipeline.file.conform import Written, conform
from mainstem.spark.pipeline.file.imports import import_file
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.problems import Path, Problem

_VARIABLE = re.compile(r"\$(\$)?\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


class Place(NamedTuple):
    """Where a part stands: lines and columns from 0; of its key, and of its value."""

    key: tuple[int, int]
    value: tuple[int, int]
    style: str | None = None  # of a scalar: None, ', ", | or >
    is_scalar: bool = False


class Document(NamedTuple):
    """A pipeline file that was read, whatever it is worth."""

    file: str
    folder: FilePath  # relative paths in the file start here
    pipeline: Pipeline | None
    problems: list[Problem]
    places: dict[Path, Place]
    lines: list[str]

    def locate(self, problem: Problem) -> tuple[int, int] | None:
        """Line and column of a problem, from 1; of the nearest enclosing part if its own is not in the
        file."""
        path, at_key = problem.path, problem.at_key
        is_there = path in self.places
        while path and path not in self.places:
            path = path[:-1]
            # A bare value may stand for the field that it is the short form of.
            is_there = path in self.places and path == problem.path[:-1] and self.places[path].is_scalar
            at_key = not is_there
        place = self.places.get(path)
        if place is None:
            return None
        line, column = place.key if at_key else place.value
        if problem.inside is not None and is_there and self._file_of(problem) is None:
            line, column = self._inside(place, problem.inside)
        return line + 1, column + 1

    def _inside(self, place: Place, inside: tuple[int, int]) -> tuple[int, int]:
        """A position within the text of a scalar, in the file."""
        line, column = place.value
        if place.style == "|":
            following = range(line + 1, len(self.lines))
            first = next((number for number in following if self.lines[number].strip()), line)
            indent = len(self.lines[first]) - len(self.lines[first].lstrip())
            return line + 1 + inside[0], indent + inside[1]
        if place.style == ">" or inside[0] > 0:
            return line, column
        return line, column + inside[1] + (1 if place.style else 0)

    def describe(self, problem: Problem) -> str:
        """`file:line:column: message`, for a person and for an editor."""
        located = self.locate(problem)
        where = f"{self.file}:{located[0]}:{located[1]}" if located else self.file
        named = [str(part) for part in problem.path[:2] if isinstance(part, str)]
        prefix = f"{'.'.join(named)}: " if len(named) == 2 else ""
        return f"{where}: {prefix}{self.message(problem)}"

    def message(self, problem: Problem) -> str:
        """What is wrong; of a query in a file of its own with that file's name, and the place there."""
        file = self._file_of(problem)
        if file is None or problem.inside is None:
            return problem.message
        return f"{file}:{problem.inside[0] + 1}:{problem.inside[1] + 1}: {problem.message}"

    def _file_of(self, problem: Problem) -> str | None:
        """The file in which the text stands that a problem is about, if that is not the pipeline's."""
        if self.pipeline is None or problem.path[2:] != ("sql_file",):
            return None
        return getattr(self.pipeline.steps.get(str(problem.path[1])), "sql_file", None)


def load(file: str | os.PathLike[str]) -> Document:
    """Read a pipeline file; OSError when it cannot be opened."""
    name, attribute = _split(os.fspath(file))
    if name.endswith(".py"):
        return _load_python(name, attribute)
    with open(name, encoding="utf-8") as stream:
        return parse(stream.read(), name)


def from_python(pipeline: Any, file: str = "pipeline", folder: FilePath | None = None) -> Document:
    """A pipeline that a program has built, checked for its form like one from a file."""
    checked, problems = conform(pipeline)
    return Document(file, folder or FilePath.cwd(), checked, problems, {}, [])


def parse(text: str, file: str = "pipeline.yaml") -> Document:
    """Read a pipeline from the text of a YAML file."""
    folder = FilePath(file).absolute().parent
    places: dict[Path, Place] = {}
    lines = text.splitlines()
    problems: list[Problem] = []
    data: Any = {}
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is not None:
            data = _Tree(loader, places, problems).build(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        places[()] = _place(mark) if mark is not None else Place((0, 0), (0, 0))
        parts = [error.context, error.problem]
        problems.append(Problem((), "this is not YAML: " + ", ".join(part for part in parts if part)))
        return Document(file, folder, None, problems, places, lines)
    except yaml.YAMLError as error:
        problems.append(Problem((), f"this is not YAML: {error}"))
        return Document(file, folder, None, problems, places, lines)
    finally:
        loader.dispose()
    places.setdefault((), Place((0, 0), (0, 0)))
    pipeline, misfits = conform(data)
    return Document(file, folder, pipeline, problems + misfits, places, lines)


class _Tree:
    """Turns YAML nodes into plain data, and notes where each part stands."""

    def __init__(self, loader: yaml.SafeLoader, places: dict[Path, Place], problems: list[Problem]) -> None:
        self._loader = loader
        self._places = places
        self._problems = problems

    def build(self, node: yaml.Node, path: Path, key: yaml.Node | None = None) -> Any:
        is_scalar = isinstance(node, yaml.ScalarNode)
        style = node.style if is_scalar else None
        value = (node.start_mark.line, node.start_mark.column)
        at_key = (key.start_mark.line, key.start_mark.column) if key is not None else value
        self._places[path] = Place(at_key, value, style, is_scalar)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        self._loader.flatten_mapping(node)
        found: dict[str, Any] = {}
        for key, item in node.value:
            # The text counts: YAML would take the key `on` of a join for true.
            name = str(key.value)
            if name in found:
                self._places[(*path, name)] = _place(key.start_mark)
                self._problems.append(Problem((*path, name), f"{name} is here twice", at_key=True))
            found[name] = self.build(item, (*path, name), key)
        return found

    def _scalar(self, node: yaml.Node, path: Path) -> Written:
        text = str(node.value)
        replaced = _VARIABLE.sub(lambda match: self._variable(match, path), text)
        if replaced != text:
            return Written(replaced if node.style else yaml.safe_load(replaced) if replaced else "", replaced)
        try:
            return Written(self._loader.construct_object(node), text)
        except (yaml.YAMLError, ValueError):
            return Written(text, text)

    def _variable(self, match: re.Match[str], path: Path) -> str:
        if match[1]:
            return match[0][1:]
        value = os.environ.get(match[2], match[3])
        if value is None:
            message = f"the environment has no {match[2]}"
            self._problems.append(Problem(path, message, f"set it, or write ${{{match[2]}:-default}}"))
            return ""
        return value


def _place(mark: yaml.Mark) -> Place:
    return Place((mark.line, mark.column), (mark.line, mark.column))


def _split(file: str) -> tuple[str, str]:
    """`flow.py:orders` is the variable `orders` in flow.py."""
    name, colon, attribute = file.rpartition(":")
    if colon and name.endswith(".py") and attribute.isidentifier():
        return name, attribute
    return file, "pipeline"


def _load_python(name: str, attribute: str) -> Document:
    path = FilePath(name).absolute()
    if not path.is_file():
        raise FileNotFoundError(2, "No such file or directory", name)
    problems: list[Problem] = []
    place: dict[Path, Place] = {(): Place((0, 0), (0, 0))}
    found: Any = None
    try:
        found = getattr(import_file(path), attribute, None)
    except Exception as error:  # whatever the file does wrong is its mistake, to be shown
        line = _line_in(error, path)
        place = {(): Place((line, 0), (line, 0))}
        problems.append(Problem((), f"the file fails: {type(error).__name__}: {error}"))
        return Document(name, path.parent, None, problems, place, [])
    if not isinstance(found, Pipeline | Mapping):
        problems.append(Problem((), f"there is no Pipeline named {attribute!r} in it"))
        return Document(name, path.parent, None, problems, place, [])
    document = from_python(found, name, path.parent)
    return document._replace(places=place)


def _line_in(error: BaseException, path: FilePath) -> int:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return (error.lineno or 1) - 1
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno - 1
        trace = trace.tb_next
    return line
