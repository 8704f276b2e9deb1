"""The list of all modules, made from the code: each package with its promise and its imports, and every module with its one line.

make map     prints it
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent


def first_line(path: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    words = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[^.])[.] ", words)[0].rstrip(".")


def modules(package: str) -> list[Path]:
    """The modules of a package and of its sub-packages, by path, without `__init__`."""
    found = sorted((HOME / "harness" / package).rglob("*.py"))
    return [path for path in found if path.stem != "__init__"]


def lines(order: list[str], arrows: set[tuple[str, str]]) -> Iterator[str]:
    """The packages, highest first, each with its modules. `arrows`: (importer, imported)."""
    for name in reversed(order):
        below = [other for other in reversed(order) if (name, other) in arrows]
        yield f"{name}: {first_line(HOME / 'harness' / name / '__init__.py')}"
        yield f"  imports {' '.join(below) or 'nothing of ours'}"
        for path in modules(name):
            yield f"  {path.relative_to(HOME)}  {first_line(path)}"
        yield ""


def main() -> None:
    """Print the list."""
    sys.path.insert(0, str(HOME))
    from tests.test_house import PACKAGES, arrows

    sys.stdout.write("\n".join(lines(list(PACKAGES), arrows())))


if __name__ == "__main__":
    main()
