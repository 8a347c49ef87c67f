"""The rules of the house that no linter knows, as functions from text to complaints.

Each takes a path (for the message) and a text, or a set of them, and returns one line per violation. The
tests in `test_tidy.py` apply them to the repository and to planted samples.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

FILE_LINES_MAX = 500
# Of a file that says in its docstring, with these words, why it is one: cohesion counts for more than length.
LONG_ON_PURPOSE = "Long on purpose:"
LONG_FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 60

# What a node's shared server has to give, and where a module could get it instead.
_HANDED_IN = re.compile(
    r"(?:time|random|secrets|uuid|threading|multiprocessing|concurrent|subprocess|os\.urandom|os\.getrandom"
    r"|os\.fork|os\.posix_spawn|asyncio\.to_thread|asyncio\.create_subprocess_\w+"
    r"|mainstem\.protocol\.uuids\.random_uuid)(?:\.|$)"
)
_ONLY_A_FORM = "uuid.UUID"  # of bytes that are given

# Spelled in pieces so that this file passes its own rules.
_UNFINISHED = re.compile(
    r"(?:#|//|<!--)\s*(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b"
)
_MACHINE_PATH = re.compile(
    r"(?<![\w.~$}/*-])/(?:" + "|".join(("ho" + "me", "Us" + "ers", "ro" + "ot", "wo" + "rk")) + r")/\w"
)
_REGISTRY = re.compile(
    "|".join(
        re.escape(name)
        for name in (
            "py" + "pi.org",
            "pythonhosted" + ".org",
            "repo1.maven" + ".org",
            "repo.maven" + ".apache.org",
        )
    )
)


def long_files(path: str, text: str) -> Iterator[str]:
    count = text.count("\n")
    if count <= FILE_LINES_MAX:
        return
    limit = (
        LONG_FILE_LINES_MAX
        if LONG_ON_PURPOSE in (ast.get_docstring(ast.parse(text)) or "")
        else FILE_LINES_MAX
    )
    if count > limit:
        yield f"{path}: {count} lines, at most {limit}: split it by idea"


def long_functions(path: str, text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines, at most {FUNCTION_LINES_MAX}"


def missing_docstrings(path: str, text: str) -> Iterator[str]:
    if not ast.get_docstring(ast.parse(text)):
        yield f"{path}: no docstring at its top that says what the file is for"


def reaches_around(path: str, text: str) -> Iterator[str]:
    """Time, randomness, threads and child processes are handed in: a module must not get them by itself."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(module), level=0):
                names = [f"{module}.{alias.name}" for alias in node.names]
            case ast.Attribute(value=ast.Name(id=owner)):
                names = [f"{owner}.{node.attr}"]
            case _:
                continue
        for name in names:
            if _HANDED_IN.match(name) and name != _ONLY_A_FORM:
                yield f"{path}:{node.lineno}: {name} is handed in, by the shared server of the node"


def unfinished_work(path: str, text: str) -> Iterator[str]:
    yield from _matches(path, text, _UNFINISHED, "unfinished work")


def machine_paths(path: str, text: str) -> Iterator[str]:
    yield from _matches(path, text, _MACHINE_PATH, "a path of one machine")


def registry_hosts(path: str, text: str) -> Iterator[str]:
    yield from _matches(path, text, _REGISTRY, "the host name of a package registry")


def lock_file_lines(path: str, text: str) -> Iterator[str]:
    """A lock file holds pinned names and hashes, and nothing that says where to get them."""
    for number, line in enumerate(text.splitlines(), 1):
        if not re.fullmatch(
            r"#.*|    #.*|    --hash=sha256:[0-9a-f]{64}( \\)?|[\w.-]+==\S+( ; .+)? \\", line
        ):
            yield f"{path}:{number}: not a pinned requirement with hashes: {line}"
        if "://" in line:
            yield f"{path}:{number}: an address in a lock file"


def _matches(path: str, text: str, pattern: re.Pattern[str], what: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if match := pattern.search(line):
            yield f"{path}:{number}: {what}: {match.group().strip()}"


def locked_names(lock_text: str) -> set[str]:
    return {_normal(name) for name in re.findall(r"^([\w.-]+)==", lock_text, re.M)}


def unlocked_requirements(requirements: Iterable[str], lock_text: str) -> Iterator[str]:
    """Requirements of pyproject.toml that its lock file does not pin."""
    locked = locked_names(lock_text)
    for requirement in requirements:
        name = re.match(r"[\w.-]+", requirement)
        if name is None or _normal(name.group()) not in locked:
            yield f"{requirement} is not in the lock file: run requirements/update"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def dead_modules(sources: Mapping[str, str], entry_points: Iterable[str], loaded_by_name: str) -> list[str]:
    """Modules that nothing reaches: neither an import in `sources` (module name -> text), nor an entry point,
    nor a registry that loads whole folders by name (`loaded_by_name` is a pattern of module names)."""
    reached: set[str] = set()
    waiting = [name for name in sources if name in set(entry_points) or re.fullmatch(loaded_by_name, name)]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        parents = [name.rsplit(".", depth)[0] for depth in range(1, name.count(".") + 1)]
        waiting += [other for other in (*_imports(name, sources), *parents) if other in sources]
    return sorted(set(sources) - reached)


def _imports(name: str, sources: Mapping[str, str]) -> Iterator[str]:
    is_package = any(other.startswith(f"{name}.") for other in sources)
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(sources[name])):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in sources:
            yield node.value  # loaded later by its name
