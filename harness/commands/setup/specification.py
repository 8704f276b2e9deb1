"""SPEC.md from a person's words, and the mission from it: the draft, the run that writes SPEC.md, and the loop of run.sh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from harness.agents.base import installed
from harness.base import console
from harness.base.errors import SIGNALLED, Interruption, Unavailable, UsageFault
from harness.mission import features, mission, roles
from harness.run import starting
from harness.run.settle import specifier
from harness.state import files, names
from harness.state.layout import Layout, command, home
from harness.state.state import State

ANSWERED, NOBODY = "a person answers your questions", "nobody answers: decide yourself"
NO_GH = (
    "There is no file '{0}', and the program `gh`, which reads issue {0}, is not installed. Save its text in a file."
)
SPEC_THERE = "There is a SPEC.md in {0} already, and it is left as it is. To build that: {1}"
UNDER_WAY = "The mission {0} has a plan already. To go on with it: {1}"
ANOTHER = "   To begin another one once it is DONE: --new"


def issue_text(name: str) -> str:
    """The text of an issue: of a file, or of the issue with this number by `gh`. Raises UsageFault or Unavailable."""
    if os.path.isfile(name):
        return files.read_text(name) or ""
    if not name.isdigit():
        raise UsageFault(f"There is no file '{name}'. Give the file of an issue, or with `gh` its number.")
    if not installed("gh"):
        raise Unavailable(NO_GH.format(name))
    words = ["gh", "issue", "view", name, "--json", "title,body"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"`{' '.join(words)}` ended with {done.returncode}: {done.stderr.strip()}")
    row = json.loads(done.stdout)
    return f"# {row['title']}\n\n{row['body']}\n"


@contextmanager
def drafted(layout: Layout, text: str, *, new: bool) -> Iterator[None]:
    """Write `text` to SPEC.md while a mission begins, or continues without a plan; a failure restores the old SPEC.md. `new`:
    archive the mission that is DONE. Raises UsageFault for a SPEC.md with another text, and for a mission with a plan."""
    before, path = files.read(layout.folders.asked_spec), layout.folders.asked_spec
    there, old = (mission.asked_spec_text(layout) or "").strip(), mission.exists(layout)
    if old and not new and features.load(layout):
        raise UsageFault(UNDER_WAY.format(mission.load(layout).id, command()) + ANOTHER)
    if there not in ("", text.strip()) and not (new and there == (State(layout).text(names.SPEC) or "").strip()):
        raise UsageFault(SPEC_THERE.format(layout.folders.project, command()))
    files.replace(path, f"{text.strip()}\n".encode())
    try:
        for line in starting.put_away(layout, abandon=False) if new else ():
            console.print_line(line)
        yield
    except BaseException:
        files.remove(path) if before is None else files.replace(path, before)
        raise


def write(layout: Layout, reason: str) -> int:
    """Run the role that writes SPEC.md once; returns its exit code."""
    role = roles.load(layout, roles.due(layout)["specifies"])
    words = [sys.executable, "-P", "-m", "harness.run", role.script]
    return _run_program(layout, words, {"HARNESS_ROLE": role.name, "REASON": reason, "FEATURE_ID": ""})


def build(layout: Layout) -> int:
    """Run the loop of run.sh to its end; returns its exit code."""
    return _run_program(layout, ["/usr/bin/env", "bash", os.path.join(home(), "run.sh")], {})


def _run_program(layout: Layout, words: list[str], more: Mapping[str, str]) -> int:
    """Run a program of the harness to its end. Signals to this process are forwarded, so that it can settle its run."""
    env = {key: value for key, value in os.environ.items() if key not in ("HARNESS_RUN_ID", "TRIGGER", "REASON")}
    env |= {"HARNESS_HOME": home(), "PYTHONPATH": home(), "HARNESS_PYTHON": sys.executable}
    env.setdefault("HARNESS_CALLED", "harness")  # in the commands that are shown
    env |= {"HARNESS_PROJECT": layout.folders.project, "HARNESS_STATE": layout.state, **more}
    with subprocess.Popen(words, cwd=layout.folders.project, env=env, stdin=subprocess.DEVNULL) as child:
        while child.poll() is None:
            try:
                child.wait()
            except Interruption as signalled:
                child.send_signal(signalled.signum)
    return child.returncode if child.returncode >= 0 else SIGNALLED - child.returncode


def questions(layout: Layout) -> list[str]:
    """The open questions in SPEC.md."""
    return specifier.items(mission.asked_spec_text(layout) or "", specifier.QUESTIONS)


def answer(layout: Layout, answers: Mapping[str, str]) -> None:
    """Write a person's answers below the questions in SPEC.md."""
    rows = (mission.asked_spec_text(layout) or "").split("\n")
    for question, text in answers.items():
        at = next(number for number, row in enumerate(rows) if row[2:].strip() == question)
        rows.insert(at + 1, f"  Answer: {text or 'decide yourself'}")
    files.replace(layout.folders.asked_spec, "\n".join(rows).encode())
