"""The tests that are nearest to a change, ended after 60 s: `python -m tests.fast`.

Changed is what is not committed yet; if that is nothing, the last commit. Of a changed module of harness/ or roles/, the file in
tests/ that mirrors it comes first, then the test files that import it; likewise a changed test file, and those that import a
changed helper of the tests. What is not reached in time is named.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

from tests import cores

CHECKOUT = Path(__file__).resolve().parent.parent
SECONDS = 60.0
OPTIONS = ("-m", "not long")


def changed(checkout: Path) -> list[Path]:
    """The Python files that differ from the last commit, or, if none does, those of the last commit; relative to the checkout."""
    asked = (("diff", "--name-only", "HEAD"), ("ls-files", "--others", "--exclude-standard"))
    lines = [line for words in asked for line in _git(checkout, *words)]
    lines = lines or _git(checkout, "show", "--format=", "--name-only", "HEAD")
    return [Path(line) for line in lines if line.endswith(".py") and (checkout / line).exists()]


def _git(checkout: Path, *words: str) -> list[str]:
    argv = ["git", "-c", "core.quotePath=false", *words]
    return subprocess.run(argv, cwd=checkout, capture_output=True, text=True, check=True).stdout.splitlines()


def mirror(module: Path) -> Path:
    """The file of the tests of a module: tests/a/test_b.py of harness/a/_b.py; a test file is its own."""
    if module.parts[0] == "tests":
        return module
    below = module.parts[1:-1] if module.parts[0] == "harness" else ("roles",)
    return Path("tests", *below, f"test_{module.stem.strip('_')}.py")


def imported(path: Path) -> set[str]:
    """The dotted names that a file imports, of modules and of what it takes from them."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def nearest(checkout: Path, modules: list[Path]) -> list[str]:
    """The test files that mirror these modules, and then those that import one of them."""
    mirrors = [path for path in map(mirror, modules) if path.name.startswith("test_") and (checkout / path).exists()]
    dotted = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in modules}
    tests = sorted(path.relative_to(checkout) for path in (checkout / "tests").rglob("test_*.py"))
    importing = [path for path in tests if dotted & imported(checkout / path)]
    return [str(path) for path in dict.fromkeys([*mirrors, *importing])]


def main() -> int:
    """Run them, each file as a batch of its own."""
    os.chdir(CHECKOUT)
    modules = changed(CHECKOUT)
    files = nearest(CHECKOUT, modules)
    sys.stdout.write(f"changed: {', '.join(map(str, modules)) or 'nothing'}\n")
    if not files:
        sys.stdout.write("no test file is near that: make test\n")
        return 0
    return cores.run([*OPTIONS], [cores.Batch(name, [name]) for name in files], seconds=SECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
