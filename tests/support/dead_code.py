"""Finds what nobody uses: names without a caller, names that only tests call, fields that nobody reads.

Two ways. vulture looks for a name anywhere, so it misses one that is used elsewhere for something else; what
stands at the top of a module is therefore looked for where it is imported, too. Both take texts by path and
give `path: name`. Tests count as users of what a package exports, and of nothing else.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping

from vulture.core import Vulture

# Registered by their decorators.
_DECORATORS = ["@*.command*", "@*.callback*", "@pytest.*"]
# These files declare messages on the wire or on disk: what a field is for is the format's business.
_MESSAGES = ("ApiMessage", "DataMessage")


def unread(sources: Mapping[str, str], users: Mapping[str, str]) -> Iterator[str]:
    """Functions, methods, fields and variables whose name nobody mentions."""
    finder = Vulture(ignore_decorators=_DECORATORS)
    for path, text in {**sources, **users}.items():
        finder.scan(text, filename=path)
    trees = [ast.parse(text) for text in sources.values()]
    by_value = set().union(*map(_found_by_value, trees))
    of_others = by_value.union(*map(_set_on_others, trees))
    for item in finder.get_unused_code():
        path, name = str(item.filename), str(item.name)
        passed = {"variable": by_value, "attribute": of_others}.get(item.typ, ())
        if path in sources and name not in passed:
            yield f"{path}: {name}"


def unimported(
    sources: Mapping[str, str], users: Mapping[str, str], tests: Mapping[str, str]
) -> Iterator[str]:
    """What stands at the top of a module, is not used there, and is imported by nobody."""
    trees = {path: ast.parse(text) for path, text in sources.items()}
    asked = _imported({**trees, **{path: ast.parse(text) for path, text in users.items()}})
    asked_by_tests = _imported({path: ast.parse(text) for path, text in tests.items()})
    for path, tree in trees.items():
        exports = path.endswith("__init__.py")
        used = asked[_module(path)] | (asked_by_tests[_module(path)] if exports else set())
        used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and _is_load(node)}
        if not exports:  # annotations in quotes
            used |= {node.value for node in ast.walk(tree) if _is_text(node)}  # type: ignore[attr-defined]
        for name in _top_names(tree, with_imports=exports):
            if name not in used and not name.startswith("__"):
                yield f"{path}: {name}"


def _found_by_value(tree: ast.Module) -> set[str]:
    """Fields of messages, members of enumerations, and keys."""
    names = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    is_format = not names.isdisjoint(_MESSAGES)
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = " ".join(ast.unparse(base) for base in node.bases)
            if is_format or "Enum" in bases or "TypedDict" in bases:
                found.update(_top_names(node))
    return found


def _set_on_others(tree: ast.Module) -> set[str]:
    """Attributes that are set on what somebody else may have made, who reads them."""
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if ast.unparse(node.value) != "self"}


def _imported(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """The names that are taken from each module, by import or by way of the module."""
    found: dict[str, set[str]] = defaultdict(set)
    for tree in trees.values():
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    found[node.module].add(alias.name)
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found[modules.get(node.value.id, "")].add(node.attr)
    return found


def _top_names(tree: ast.Module | ast.ClassDef, *, with_imports: bool = False) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not getattr(node, "decorator_list", None) or isinstance(node, ast.ClassDef):
                yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.ImportFrom) and with_imports:
            yield from (alias.asname or alias.name for alias in node.names if node.module != "__future__")


def _is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _module(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
