"""No private name of a third party is imported, called or assigned: what a library does inside is its own."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
FOLDERS = ("harness", "roles", "tests", "bench", "examples")
OURS = {*FOLDERS, *sys.stdlib_module_names}  # the names of Python itself are no third party's
BY_NAME = {"getattr", "setattr", "delattr", "hasattr"}  # also those of a MonkeyPatch


def private(name: str) -> bool:
    """Whether an identifier begins with one underscore, or with two and does not end so, too."""
    return name.startswith("_") and name.isidentifier() and not name.endswith("__")


def attributes(tree: ast.AST) -> Iterator[str]:
    """The attributes that the classes of a module define, by their bodies or by `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from (one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
            parts = [part for part in node.body if isinstance(part, ast.Assign | ast.AnnAssign)]
            yield from (one.id for part in parts for one in ast.walk(part) if isinstance(one, ast.Name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def imported(tree: ast.AST) -> dict[str, str]:
    """{the name that a module has for it: what is imported}."""
    found = dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def used(tree: ast.AST, own: set[str]) -> Iterator[str]:
    """The private names of third parties that a module uses. `own`: the attributes of our classes. Any other is one, unless it is
    looked up in a module of ours, or of Python."""
    names = imported(tree)
    theirs = {name: path for name, path in names.items() if path.partition(".")[0] not in OURS}
    yield from (path for path in theirs.values() if any(map(private, path.split("."))))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and private(node.attr):
            base = ast.unparse(node).partition(".")[0]
            if base in theirs or (base not in names and node.attr not in own):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in BY_NAME:
            base = ast.unparse(node.args[0]).partition(".")[0] if node.args else ""
            texts = [
                one.value for one in node.args[1:2] if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            found = [text for text in texts if private(text) and text not in own]
            yield from (ast.unparse(node) for _ in found if base in theirs or base not in names)


def test_no_private_name_of_a_third_party_is_used() -> None:
    """Neither a module nor an attribute with a leading underscore, in the product, its tests and its benchmarks."""
    paths = [path for folder in FOLDERS for path in (HOME / folder).rglob("*.py")]
    trees = {path.relative_to(HOME): ast.parse(path.read_text()) for path in paths}
    own = {name for tree in trees.values() for name in attributes(tree)}
    found = {f"{path}: {name}" for path, tree in trees.items() for name in used(tree, own)}
    assert found == set()


def test_a_private_name_of_a_third_party_is_found() -> None:
    """In any form: imported, looked up, assigned, or as a string; names of the harness and of Python are allowed."""
    text = (
        "import os, httpx2, openai._utils\n"
        "from google.genai import _common, types as t\n"
        "request._content = b''\n"
        "t._client()\n"
        "setattr(request, '_stream', 1)\n"
        "self._ours = os._exit\n"
        "self._ours()\n"
    )
    tree = ast.parse(text)
    found = set(used(tree, {*attributes(tree), "_client"}))
    assert found == {
        *("openai._utils", "google.genai._common", "request._content", "t._client", "setattr(request, '_stream', 1)")
    }
