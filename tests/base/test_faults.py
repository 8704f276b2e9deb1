"""What is wrong, on one line: never a heading alone, never the noise with which a program ends."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base import faults

HIDDEN = "its confinement hides /tmp/x: each run has an empty /tmp of its own"
LIST = "The plan is rejected:\n- F-001 has no claim\n- VAL-2 needs checks"


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("", ""),
        ("it fell over\nmore", "it fell over"),
        ("\n\nit fell over", "it fell over"),
        ("ends here:", "ends here:"),
        (LIST, "The plan is rejected: F-001 has no claim (and 1 more)"),
        ("The plan is rejected:\n- one\n    sent as:\n    test -f x", "The plan is rejected: one"),
        (
            f"its reply was refused: {LIST}",
            "its reply was refused: The plan is rejected: F-001 has no claim (and 1 more)",
        ),
        (
            "setup ended with exit 4:\nCollecting x\nno compiler here\nmake: *** [x] Error 1",
            "setup ended with exit 4: no compiler here",
        ),
        ("setup ended with exit 4:\n\n", "setup ended with exit 4:"),
        ("clear \x1b[2J\u202eme\x9b", "clear  [2J me"),
    ],
)
def test_the_first_real_fault_is_shown(reason: str, shown: str) -> None:
    """A heading is shown with the first fault behind it, never alone."""
    assert faults.first(reason) == shown


def test_a_long_fault_is_cut_and_says_how_many_follow() -> None:
    """The number of the others is not what is cut off."""
    assert faults.first(LIST.replace("no claim", "x" * 100), 60).endswith("xx… (and 1 more)")
    assert len(faults.first(LIST.replace("no claim", "x" * 100), 60)) == 60
    assert faults.cut("abc", 3) == "abc"
    assert faults.cut("abcd", 3) == "ab…"


PIPE = """out
Traceback (most recent call last):
  File "main.py", line 3, in <module>
    print("line")
BrokenPipeError: [Errno 32] Broken pipe
"""
PYTEST = """============ test session starts ============
    def test_add():
>       assert add(2, 2) == 4
E       assert 5 == 4
E        +  where 5 = add(2, 2)

test_add.py:4: AssertionError
=========== short test summary info ===========
FAILED test_add.py::test_add - assert 5 == 4
============ 1 failed in 0.02s ============
make: *** [Makefile:2: test] Error 1
"""


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", ""),
        ("a\nexpected 3, got 4\n", "expected 3, got 4"),
        ("expected 3, got 4\nmake: *** [Makefile:2: test] Error 1\n", "expected 3, got 4"),
        ("expected 3, got 4\nmake[1]: *** [test] Error 1\nmake[1]: Leaving directory 'x'", "expected 3, got 4"),
        (f"expected 3, got 4\n{PIPE}make: *** [x] Error 1", "out"),
        (PIPE.removeprefix("out\n"), ""),
        (f"expected 3, got 4\n{PIPE.removeprefix('out')}", "expected 3, got 4"),
        (
            "no hand-made sign\nException ignored in: <_io.TextIOWrapper name='<stdout>'>\nBrokenPipeError: Broken pipe",
            "no hand-made sign",
        ),
        (PYTEST, "FAILED test_add.py::test_add - assert 5 == 4"),
        (PYTEST.replace("FAILED ", "failed "), "assert 5 == 4"),
        (
            "FAIL: test_a (t.T)\nAssertionError: 1 != 2\n----\nRan 1 test in 0.0s\n\nFAILED (failures=1)",
            "AssertionError: 1 != 2",
        ),
        (
            "--- FAIL: TestAdd (0.00s)\n    add_test.go:9: got 5, want 4\nFAIL\nexit status 1\nFAIL",
            "--- FAIL: TestAdd (0.00s) add_test.go:9: got 5, want 4",
        ),
        (
            "thread 'a' panicked at src/lib.rs:5:9:\nleft is not right\nnote: run with `RUST_BACKTRACE=1`",
            "thread 'a' panicked at src/lib.rs:5:9: left is not right",
        ),
        ("ok 1\nnot ok 2 - adds\nok 3", "not ok 2 - adds"),
        ("not ok 1 - later # TODO\nnot ok 2 - adds\n  ---\n  error: it is 4\n  ...\n", "not ok 2 - adds: it is 4"),
        ("# Error: of another test\nok 1\nnot ok 2 - adds", "not ok 2 - adds"),
        ("# Error: logged\nnot ok 1 - a\n  ---\n  error: 'wrong'\n  stack: |-\n    x:1\n", "not ok 1 - a: wrong"),
        (
            "a.js\n  1:7  error  'a' is never used  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)\n  1 error and 0 more\n",
            "1:7  error  'a' is never used  no-unused-vars",
        ),
        (
            "a.ts(1,7): error TS2322: no number\na.ts(2,7): error TS2322: no text",
            "a.ts(1,7): error TS2322: no number",
        ),
        (
            "error[E0308]: mismatched types\n --> src/lib.rs:1:17\nerror: could not compile `a` due to 1 previous error",
            "error[E0308]: mismatched types",
        ),
        (
            "FAIL ./a.test.js\n  ● adds\n\n    expect(received).toBe(expected)\n\nTests:  1 failed\nRan all test suites.",
            "● adds",
        ),
        (
            "main.c:3:5: error: expected ';'\nmain.c:9:1: error: more\n2 errors generated.",
            "main.c:3:5: error: expected ';'",
        ),
        ("1c1\n< 2 [ ] Water\n---\n> 3 [ ] Mum\n", "< 2 [ ] Water > 3 [ ] Mum"),
        (
            '1,3c1\n< Traceback (most recent call last):\n<   File "a.py", line 1\n< IndexError: none left\n---\n> 1 5\n',
            "< IndexError: none left > 1 5",
        ),
        (
            "@@ -1,3 +1 @@\n-Traceback (most recent call last):\n-    raise Gone\n-GoneError\n+1 5\n",
            "- GoneError: raise Gone +1 5",
        ),
        ("tool: note\n0a1\n> 2 [ ] Water\n", "> 2 [ ] Water"),
        ("--- a\n+++ b\n@@ -1 +1 @@\n-4\n+5\n same", "-4 +5"),
        ("Error: expected 3\n    at x.js:3\nnpm ERR! code 1", "Error: expected 3"),
        (f"make: x: not found\nmake: *** [x] Error 1\n{HIDDEN}\n", f"make: x: not found; {HIDDEN}"),
        (f"\n{HIDDEN}\n", HIDDEN),
    ],
)
def test_an_output_says_what_was_wrong_not_how_it_ended(output: str, said: str) -> None:
    """The first failing assertion or exception; else the last line that is no noise."""
    assert faults.of_output(output) == said


def test_a_real_assertion_without_words_is_shown_with_its_code(tmp_path: object) -> None:
    """Python's own traceback: the exception alone would say nothing; of a chain it is the last."""

    def said(program: str) -> str:
        path = f"{tmp_path}/program.py"
        with open(path, "w") as file:
            file.write(program)
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
        return faults.of_output(done.stderr)

    assert said("def add(a, b):\n    return 5\n\n\nassert add(2, 2) == 4\n") == "AssertionError: assert add(2, 2) == 4"
    assert said("try:\n    {}['a']\nexcept KeyError:\n    raise ValueError('no a')\n") == "ValueError: no a"
    assert said("raise SystemExit('no sign')\n") == "no sign"


FAILING = """const test = require('node:test'), assert = require('node:assert')
test('adds', () => { assert.strictEqual(1 + 1, 2) })
test('greets', () => { assert.strictEqual('Hello, Bob', 'Hello, Ada') })"""
NESTED = """const { describe, it } = require('node:test'), assert = require('node:assert')
describe('tree', () => { it('parses', () => { throw new TypeError('no parser') }) })"""
UNLOADED = "require('./not-there.js')"
CRASHED = "process.kill(process.pid, 'SIGKILL')"
UNEQUAL = "Expected values to be strictly equal: + actual - expected + 'Hello, Bob' - 'Hello, Ada'"


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node")
@pytest.mark.parametrize(
    ("program", "tap", "spec"),
    [
        (FAILING, f"not ok 2 - greets: {UNEQUAL}", f"AssertionError [ERR_ASSERTION]: {UNEQUAL}"),
        (NESTED, "not ok 1 - parses: no parser", "TypeError: no parser"),
        (
            UNLOADED,
            "not ok 1 - a.test.js: Error: Cannot find module './not-there.js'",
            "Error: Cannot find module './not-there.js'",
        ),
        (CRASHED, "not ok 1 - a.test.js: test failed", "✖ a.test.js"),
        ("", "Could not find 'a.test.js'", "Could not find 'a.test.js'"),
    ],
)
def test_a_failed_test_of_node_is_shown_with_its_error(tmp_path: Path, program: str, tap: str, spec: str) -> None:
    """By both of its reporters; of a file that cannot be loaded, what it lacks; never a count."""
    if program:
        (tmp_path / "a.test.js").write_text(program)
    for reporter, wanted in (("tap", tap), ("spec", spec)):
        argv = ["node", "--test", f"--test-reporter={reporter}", "a.test.js"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        said = faults.of_output(done.stdout + done.stderr).replace(f"{tmp_path}/", "").replace(" [Error]", "")
        assert re.sub(r" \(\d[\d.]*ms\)$", "", said) == wanted


def test_a_fault_of_the_machine_is_none_of_the_work() -> None:
    """What two features may both meet; an assertion that happens to read the same is not."""
    machine = (
        "bash: line 1: npm: command not found",
        "ModuleNotFoundError: No module named 'yaml'",
        "x: Permission denied",
    )
    assert all(map(faults.of_machine, machine))
    assert not any(map(faults.of_machine, ("AssertionError: 1 != 0", "< 2 [ ] Buy milk", "FAILED tests/a.py::test_b")))
