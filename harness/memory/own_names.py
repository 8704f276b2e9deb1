"""What may leave a mission: nothing that names its project, a host, a person or an id, and nothing that is gated. Pure."""

from __future__ import annotations

import re

from harness.memory import gates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Names that every project has: they reveal nothing about this project.
COMMON_FILES = re.compile(
    r"makefile|dockerfile|readme\.md|agents\.md|spec\.md|package(-lock)?\.json|tsconfig\.json|pyproject\.toml|setup\.py"
    r"|conftest\.py|requirements\.txt|cargo\.(toml|lock)|go\.(mod|sum)|(yarn|uv)\.lock|pnpm-lock\.yaml|\.env"
    r"|\.(git|docker)ignore|docker-compose\.ya?ml"
)
_IDS = re.compile(r"\b(?:F|VAL|ISS|ISSUE|FEAT|FEATURE)-[A-Za-z0-9-]*[0-9]\b")
_HOME = re.compile(r"(?:^|[\s\"'`(=:])/(?:home|Users|root|mnt|srv|var/folders)/")
_HOST = re.compile(
    r"\b(?!127\.|0\.0\.0\.0)\d{1,3}(?:\.\d{1,3}){3}\b|\b[\w.-]+@[\w-]+\.\w{2,}|\b[\w-]+(?:\.[\w-]+)*\.(?:internal|local|corp|lan|intra|home"
    r"|prod|staging)\b|\b(?!(?:www\.)?(?:example|github|gitlab|npmjs|pypi|docker|python|nodejs|rust-lang|crates|golang|debian|ubuntu|mozilla|w3|ghcr|quay)\.)"
    r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|org|net|io|dev|app|cloud|co|de|eu|fr|uk|cn|jp|ai|tech|site|xyz)\b(?![./]?\w*\()",
    re.IGNORECASE,
)


def may_travel(text: str, project_names: Iterable[str]) -> bool:
    """Whether a note may leave its mission: no path or id of this project (`project_names`), no host, nothing gated."""
    refused = any(pattern.search(text) for pattern in (_IDS, _HOME, _HOST)) or gates.gated(text)
    return not refused and not names_project(text, project_names)


def own_names(project_names: Iterable[str]) -> frozenset[str]:
    """Lower-case paths, file names and folders of the project, without the common ones."""
    found: set[str] = set()
    for name in project_names:
        path = name.lower().strip("/")
        found |= {path, path.rpartition("/")[2], path.rpartition(".")[0].replace("/", ".")}
        while "/" in path:
            path = path.rpartition("/")[0]
            found.add(path + "/")
    return frozenset(name for name in found if name and not COMMON_FILES.fullmatch(name))


def names_project(text: str, project_names: Iterable[str]) -> bool:
    """Whether a word of `text` is a path of the project, or one of its file names that is no plain word."""
    own = project_names if isinstance(project_names, frozenset) else own_names(project_names)
    for word in re.findall(r"[^\s`\"'(),;<>|=]+", text.lower()):
        path = word.rstrip(".:!?").removeprefix("./")
        if "/" in path and "://" not in path:
            if path.strip("/") in own or path.partition("/")[0] + "/" in own:
                return True
        elif path in own and re.search(r"[^a-z]", path):
            return True
    return False
