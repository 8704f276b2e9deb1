"""Reward-hacking signals in a diff: what a validator must review before it trusts green checks. Pure.

A signal is not a verdict: deleting a test can be right. The feature's receipts and the validator's prompt list it, so that
it cannot be overlooked.
"""

from __future__ import annotations

import re

from harness.model.contract import Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TEST_FILE = re.compile(
    r"(^|/)(tests?|specs?|__tests__)/|(^|/)test_[^/]*$|[._-](test|spec)s?\.[^/]+$|_test\.[^/]+$", re.IGNORECASE
)
SKIPS = re.compile(
    r"pytest\.(mark\.)?(skip|xfail)|unittest\.skip|@skip|\bskipTest\(|\.skip\(|\.only\(|\bx(it|describe|test)\(|@(Disabled|Ignore)\b"
    r"|#\[ignore\]|\bt\.Skip\(|importorskip|\bpending\(",
)
SWALLOWS = re.compile(
    r"^\s*(exit 0|sys\.exit\(0\)|os\._exit\(0\)|process\.exit\(0\))\s*;?\s*$|\|\|\s*(true|:)\s*$|except[^:]*:\s*pass\b"
)
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")


def signs(changed: Iterable[tuple[str, str]], patch: str, claims: Iterable[Claim]) -> list[str]:
    """The signals in a diff. `changed`: (git's status letter, path); `patch`: the unified diff."""
    files = list(changed)
    found = [f"deletes the test file {path}" for letter, path in files if letter == "D" and TEST_FILE.search(path)]
    found += _changed_files_of_checks(files, claims)
    for path, added, removed in hunks(patch):
        found += _in_file(path, added, removed)
    return list(dict.fromkeys(found))


def _changed_files_of_checks(files: list[tuple[str, str]], claims: Iterable[Claim]) -> list[str]:
    """Changed or deleted files that a check runs or reads by name."""
    found = []
    for claim in claims:
        named = {word.removeprefix("./") for check in claim.checks for word in WORD.findall(check.run)}
        for letter, path in files:
            test = bool(TEST_FILE.search(path))
            if letter != "A" and (path in named or (test and _is_below(named, path))):
                found.append(f"{'deletes' if letter == 'D' else 'edits'} {path}, which a check of {claim.id} names")
    return found


def _is_below(named: set[str], path: str) -> bool:
    """Whether one of the names is a folder that contains the path."""
    return any(path.startswith(name.rstrip("/") + "/") for name in named)


def _in_file(path: str, added: list[str], removed: list[str]) -> list[str]:
    found = []
    if any(SKIPS.search(line) for line in added) and TEST_FILE.search(path):
        found.append(f"skips tests in {path}")
    if any(SWALLOWS.search(line) for line in added):
        found.append(f"swallows a failure in {path}")
    if TEST_FILE.search(path) and _assertions(removed) > _assertions(added):
        found.append(f"removes assertions from {path}")
    return found


def _assertions(lines: list[str]) -> int:
    return sum(bool(re.search(r"\b(assert\w*|expect|should|test)\b", line)) for line in lines)


def hunks(patch: str) -> list[tuple[str, list[str], list[str]]]:
    """(path, added lines, removed lines) of every file in a unified diff."""
    found: list[tuple[str, list[str], list[str]]] = []
    inside = False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            found.append((line.rsplit(" b/", 1)[-1], [], []))
            inside = False
        elif line.startswith("@@"):
            inside = True
        elif found and inside and line[:1] == "+":
            found[-1][1].append(line[1:])
        elif found and inside and line[:1] == "-":
            found[-1][2].append(line[1:])
    return found
