"""Classifies a file that a check names: the program under test, or a test, a check script, or an input. Pure."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

TEST_FILE = re.compile(
    r"(^|/)(tests?|specs?|__tests__)/|(^|/)test_[^/]*$|[._-](test|spec)s?\.[^/]+$|_test\.[^/]+$"
    r"|(^|/)tests?\.(py|sh|rb|go|[cm]?[jt]sx?)$|[._-]test-d\.ts$|(^|/)conftest\.py$",
    re.IGNORECASE,
)
CHECK_FILE = re.compile(
    r"(^|/)(fixtures?|test[-_]?data|goldens?|(__)?snapshots(__)?|expected|checks|e2e)/"
    r"|(^|/)(checks?|verify|expect(ed)?|golden|smoke|e2e|acceptance|self[-_]?test|run[-_.]?tests?)([-_.][^/]*)?$",
    re.IGNORECASE,
)
PROGRAM = re.compile(
    r"\.(pyw?|[cm]?[jt]sx?|sh|bash|zsh|rb|pl|php|go|rs|[ch]|cc|[ch]pp|java|kt|lua|awk|hs|ml|swift|cs|scala|exs?)$"
    r"|(^|/)(?!makefile$|dockerfile$|license$|readme$)[^./]+$",
    re.IGNORECASE,
)
SHELL = re.compile(r"\.(sh|bash|zsh|bats)$|(^|/)[^./]+$")
ABOUT = re.compile(  # documentation and metadata of a project, which checks examine
    r"(^|/)(readme|changelog|licen[cs]e|makefile|dockerfile|package(-lock)?\.json$|requirements[^/]*\.txt$|\.[^/]+$)"
    r"|\.(md|rst|toml|cfg|ini|ya?ml)$",
    re.IGNORECASE,
)
TASK = re.compile(r"\b((?:npm|pnpm|yarn|bun|make|go|cargo|mix|rake)\s+(?:(?:run|-\S+)\s+)*)tests?\b")  # no folder
# Test files themselves, without helpers of tests.
BY_ITSELF = re.compile(r"(^|/)test_[^/]*$|[._-](test|spec)s?\.[^/]+$|_test\.[^/]+$", re.IGNORECASE)
LOOKS = re.compile(
    r"^\s*(!\s*)?(if\s+)?(e?grep|rg|test|\[+|wc|ls|stat|file|jq|git|rm|mkdir|touch|chmod)\b|^\s*(!\s*)?\["
)


def as_seen(path: str, prefix: str) -> str:
    """The path of a repository file relative to the folder `prefix`, such as `../shared/x` from `services/`."""
    return os.path.relpath(path, prefix) if prefix else path


def decides(path: str, check: str) -> bool:
    """Whether this check names the file and the file is part of the check: a test, a check script, expected or input
    data, a helper next to its test. The program that it runs, and files that it examines, are the work itself."""
    named, below = _named(path, check)
    if TEST_FILE.search(path) or CHECK_FILE.search(path):
        return named or below or (not BY_ITSELF.search(path) and _is_beside_test(path, check))
    if not named or PROGRAM.search(path):
        return False
    return bool(re.search(r"\b(diff|cmp|comm)\b", check)) or (not ABOUT.search(path) and _is_input(path, check))


def _is_beside_test(path: str, check: str) -> bool:
    """Whether the check names a test in the folder of this file, or in one above it; at the top there are too many."""
    tests = (word for word in words(check) if TEST_FILE.search(word) or CHECK_FILE.search(word))
    return any(path.startswith(os.path.dirname(word) + "/") for word in tests if "/" in word)


def _named(path: str, check: str) -> tuple[bool, bool]:
    """(whether a word of the check is this file, whether one is a folder above it)."""
    known = NamedPaths([check])
    return path in known, any(path.startswith(word + "/") for word in known.words if word)


class NamedPaths:
    """The paths that checks name: `path in named` costs the same for one check and for a thousand."""

    def __init__(self, checks: Iterable[str]) -> None:
        self.words = [word for check in checks for word in words(check)]
        parts = [word.split("/") for word in self.words]
        self.files = {"/".join(one[at:]) for one in parts for at in range(len(one))}
        self.patterns = [word for word in self.words if "*" in word]

    def __contains__(self, path: object) -> bool:
        return path in self.files or any(_matches(str(path), word) for word in self.patterns)


@functools.lru_cache(1024)
def words(check: str) -> list[str]:
    """The words of a check that may be paths, also relative to folders that it enters."""
    found = [word.removeprefix("./").rstrip("/") for word in re.findall(r"[\w.*?%@+~/-]+", TASK.sub(r"\1", check))]
    entered = re.findall(r"\bcd\s+[\"']?([\w./-]+)", check)
    return [*found, *(f"{folder.strip('./')}/{word}" for folder in entered for word in found)]


def _matches(path: str, word: str) -> bool:
    """Whether a shell expands this word to the file; `*` stays within a folder, `**` does not."""
    return "*" in word and ("**" in word or path.count("/") == word.count("/")) and fnmatchcase(path, word)


def _is_input(path: str, check: str) -> bool:
    """Whether a command of the check reads the file other than to examine it."""
    commands = re.split(r"&&|\|\||[|;&\n()]", check)
    return any(_named(path, part)[0] and not LOOKS.search(part) for part in commands)
