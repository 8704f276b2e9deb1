"""Promises of tests/forked.py, by which tests run roles: to the script it is a new process, to the test it is `House.run`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.git import dotgit
from tests import forked

SHOW = """import gc, os, sys
from harness.git import dotgit
print(sys.argv[1:], os.getcwd(), sorted(os.environ), __name__, sys.stdin.read(), dotgit._known)
print(sorted(os.listdir("/proc/self/fd"), key=int)[:-1], file=sys.stderr)
"""
ENDS = {
    "raise SystemExit(7)": (7, ""),
    "print('x')": (0, ""),
    "import sys; sys.exit()": (0, ""),
    "1 / 0": (1, "ZeroDivisionError"),
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": (-9, ""),
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": (-15, ""),
}


def script(folder: Path, text: str) -> str:
    """A script with this text."""
    (folder / "script.py").write_text(text)
    return str(folder / "script.py")


def test_the_script_has_what_it_was_given_and_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, folder, environment, an empty input; no descriptor of this process, and nothing that git calls left."""
    monkeypatch.setenv("OURS", "1")
    monkeypatch.setitem(dotgit._known, "/a", ("/b", "/c"))
    kept = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(kept, True)
    code, out, err = forked.run(script(tmp_path, SHOW), ["a", "b c"], tmp_path, {"GIVEN": "é"})
    os.close(kept)
    assert (code, err) == (0, "['0', '1', '2']\n")
    assert out == f"['a', 'b c'] {tmp_path} ['GIVEN'] __main__  {{}}\n"
    assert (os.environ["OURS"], "GIVEN" in os.environ, dotgit._known["/a"]) == ("1", False, ("/b", "/c"))


@pytest.mark.parametrize("text", ENDS)
def test_its_end_is_that_of_a_program(tmp_path: Path, text: str) -> None:
    """Exit codes, a traceback, signals; none of them reaches the test."""
    code, said = ENDS[text]
    ended = forked.run(script(tmp_path, text), [], tmp_path, dict(os.environ))
    assert (ended[0], said in ended[2], bool(said) == bool(ended[2])) == (code, True, True), ended


def test_one_that_hangs_is_killed_and_fails_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its pid, so that nothing waits forever."""
    monkeypatch.setattr(forked, "SECONDS", 0.2)
    text = f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    with pytest.raises(TimeoutError):
        forked.run(script(tmp_path, text), [], tmp_path, dict(os.environ))
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text()}") or sys.platform != "linux"
