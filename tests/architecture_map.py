"""The part of docs/architecture.md that comes from the code: the packages with their imports, and every module with its one line.

python tests/architecture_map.py     writes it into the page
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
PAGE = HOME / "docs" / "architecture.md"
BEGIN, END = "<!-- made from the code by tests/architecture_map.py -->\n", "<!-- end -->\n"


def first_line(path: Path) -> str:
    """The first sentence of a module's docstring, on one line, ready for a table."""
    words = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[^.])[.] ", words)[0].rstrip(".").replace("|", r"\|")


def modules(package: str) -> list[Path]:
    """The modules of a package and of its sub-packages, by path, without `__init__`."""
    found = sorted((HOME / "harness" / package).rglob("*.py"))
    return [path for path in found if path.stem != "__init__"]


def made(order: list[str], arrows: set[tuple[str, str]]) -> str:
    """The section: one table of packages, highest first, then one table of modules for each. `arrows`: (importer, imported)."""
    lines = [BEGIN, "| package | promise | imports |\n", "|---|---|---|\n"]
    for name in reversed(order):
        below = [other for other in reversed(order) if (name, other) in arrows]
        promise = first_line(HOME / "harness" / name / "__init__.py")
        lines.append(f"| [{name}](#{name}) | {promise} | {' '.join(below) or '-'} |\n")
    for name in reversed(order):
        lines += [f"\n### {name}\n\n", "| module | what it does |\n", "|---|---|\n"]
        for path in modules(name):
            lines.append(f"| `{path.relative_to(HOME)}` | {first_line(path)} |\n")
    return "".join([*lines, END])


def page_with(section: str) -> str:
    """The page, with the section in the place of the one that it has."""
    head, rest = PAGE.read_text().split(BEGIN, 1)
    return head + section + rest.split(END, 1)[1]


def main() -> None:
    """Write the section into the page."""
    sys.path.insert(0, str(HOME))
    from tests.test_house import PACKAGES, arrows

    PAGE.write_text(page_with(made(list(PACKAGES), arrows())))


if __name__ == "__main__":
    main()
