"""Which files decide a check, and which are what it is about."""

from __future__ import annotations

import pytest

from harness.proof import _file_kinds


@pytest.mark.parametrize(
    ("path", "check", "decides"),
    [
        ("check.sh", "./check.sh", True),
        ("spell-check.py", "python spell-check.py a.txt", False),
        ("a.txt", "python spell-check.py a.txt", True),
        ("b.txt", "python spell-check.py a.txt", False),
        ("tests/deep/a.json", "pytest tests", True),
        ("src/a.json", "make -C src", False),
        ("checks/lib.sh", "bash checks/lib.sh", True),
        ("README.md", "grep -c usage README.md", False),
        ("README.md", "diff README.md <(./greet --help)", True),
        ("page.html", "grep -q title page.html", False),
        ("data.json", "jq -e .a data.json", False),
        ("data.json", "cat data.json | ./sum | grep 4", True),
        ("data.json", 'cp data.json "$TMPDIR" && ./sum', True),
        ("test/sum.js", "npm ci && npm test", False),
        ("test/sum.js", "npx mocha test", True),
        ("test/sum.js", "npx mocha *.js", False),
        ("test/sum.js", "npx mocha **/*.js", True),
        ("golden/a.txt", "make golden", True),
        (".hidden/expected.txt", "diff <(./sum) .hidden/expected.txt", True),
    ],
)
def test_a_file_decides_a_check_or_is_what_it_is_about(path: str, check: str, decides: bool) -> None:
    """By its place and name, and by what the check does with it."""
    assert _file_kinds.decides(path, check) == decides
