"""What packages of third parties are used for is as docs/decisions/0009-packages.md says; a new lock uses filelock."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
PAGE = (HOME / "docs" / "decisions" / "0009-packages.md").read_text()
RUN = ("agent", "otel", "redis", "postgres", "s3", "dask")  # extras
NAMES = {  # a package -> the modules that it and what it brings have; click has its own name
    "python-frontmatter": {"frontmatter", "yaml"},
    "markdown-it-py": {"markdown_it"},
    "jinja2": {"jinja2", "markupsafe"},
    "pydantic-ai-slim": {"pydantic", "pydantic_ai", "pydantic_core", "httpx2", "mcp", "mcp_types", "anyio"},
    "opentelemetry-sdk": {"opentelemetry"},
    "opentelemetry-exporter-otlp-proto-http": {"opentelemetry"},
    "ripgrep": set[str](),
}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    text = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in text.split("\n") if line.startswith("|")][2:]


def packages(requirements: list[str]) -> set[str]:
    """The names in a list of requirements."""
    return {re.split(r"[\[<>=;]", line)[0].strip() for line in requirements}


def imports() -> Iterator[tuple[str, str]]:
    """(module, a third party's module that it imports) of harness/."""
    for path in (HOME / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            said = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            said += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in {one.partition(".")[0] for one in said} - {"harness", *sys.stdlib_module_names}:
                yield path.relative_to(HOME).as_posix(), name


def test_the_page_names_every_package_of_pyproject() -> None:
    """And no other."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert {row[0] for row in rows("At run time")} == packages(
        [*project["dependencies"], *(line for extra in RUN for line in extras[extra])]
    )
    assert {name for row in rows("In development") for name in row[0].split(", ")} == packages(extras["dev"])


def test_a_package_is_imported_where_the_page_says() -> None:
    """By all that it names, and by no other module."""
    found = set(imports())
    known = set[str]()
    for package, _, where in rows("At run time"):
        names, places = NAMES.get(package, {package}), re.findall(r"`([^`]+)`", where)
        known |= names
        used = {path for path, name in found if name in names}
        assert [path for path in used if not path.startswith(tuple(places))] == [], package
        assert [one for one in places if names and not any(path.startswith(one) for path in used)] == [], package
    assert {name for _, name in found} <= known


def test_only_the_modules_that_the_page_names_take_flock() -> None:
    """A new lock uses filelock."""
    found = {
        path.relative_to(HOME).as_posix()
        for path in (HOME / "harness").rglob("*.py")
        if "fcntl.flock" in path.read_text()
    }
    assert found == {path for row in rows("Locks") for path in re.findall(r"`([^`]+)`", row[0])}
