"""Counts the error codes in responses, wherever the schema has them: for the answer as a whole, or for each
topic, partition or group of it.
"""

from collections.abc import Callable
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct

from mainstem.broker.monitoring.meters import RequestMeter

_FIELDS = ("error_code", "partition_error_code")
Encode = Callable[[Any], Any]


def counting(encode: Encode, response_class: type[Struct], meter: RequestMeter) -> Encode:
    """An encoder that also counts the errors of what it encodes."""
    codes_of = error_codes(response_class)
    if codes_of is None:
        return encode
    errors = meter.errors

    def count_and_encode(response: Any) -> Any:
        for code in codes_of(response):
            errors[code] = errors.get(code, 0) + 1
        return encode(response)

    return count_and_encode


def error_codes(response_class: type[Struct]) -> Callable[[Any], list[int]] | None:
    """A function that lists the codes of a response other than 0; None where the API has no such field."""
    found = [_expression(path) for path in _paths(response_class, ())]
    if not found:
        return None
    # Compiled: a response may hold thousands of partitions, and nearly all of them went well.
    function: Callable[[Any], list[int]] = eval(f"lambda response: {' + '.join(found)}")
    return function


def _paths(structure: type[Struct], path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The ways to the error codes, each as the fields on it; `?` follows that of a structure, not a list."""
    paths = []
    for name, hint in get_type_hints(structure).items():
        if name in _FIELDS:
            paths.append((*path, name))
            continue
        for kind in (hint, *get_args(hint)):
            if get_origin(kind) is list and _is_structure(get_args(kind)[0]):
                paths += _paths(get_args(kind)[0], (*path, name))
            elif _is_structure(kind) and get_origin(hint) is not list:
                paths += _paths(kind, (*path, f"{name}?"))
    return paths


def _is_structure(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _expression(path: tuple[str, ...]) -> str:
    """A list of the codes at the end of a path."""
    loops = []
    holder = "response"
    for depth, field in enumerate(path[:-1]):
        values = f"{holder}.{field} or ()"
        if field.endswith("?"):
            name = f"{holder}.{field[:-1]}"
            values = f"({name},) if {name} is not None else ()"
        loops.append(f"for part{depth} in ({values})")
        holder = f"part{depth}"
    code = f"{holder}.{path[-1]}"
    return f"[{code} {' '.join(loops)} if {code}]" if loops else f"([{code}] if {code} else [])"
