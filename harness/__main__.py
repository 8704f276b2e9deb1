"""The `harness` command: fast paths first, because they run thousands of times; click handles the rest."""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until `guarded`: Ctrl-C while modules load prints no traceback
    _checkout = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, _checkout)
    if os.path.exists(os.path.join(_checkout, "run.sh")):  # no installed `harness` command that a remedy could name
        os.environ.setdefault("HARNESS_CALLED", os.path.join(_checkout, "run.sh"))

from harness.base import console, errors, exits
from harness.cli import quick
from harness.mission import roles
from harness.state import layout, names
from harness.workplace import run_detection


def main() -> int:
    """Dispatch the command line and return the exit code; words that are not a command go to run.sh."""
    return exits.guarded(_dispatch)


def _dispatch() -> int:
    words = _run_option(_folder_option(sys.argv[1:]))
    if words and _is_own_role(words):
        return _run_sh(words)
    if words and words[0] in quick.QUICK and ("--help" not in words or words[0] == "hold"):
        return quick.QUICK[words[0]](words[1:])
    from harness.cli.main import COMMANDS, application  # click, which fast paths do not need

    if quick.COMPLETING in os.environ or (words and words[0] in (*COMMANDS, "-h", "--help", "--version")):
        return application(words)
    if len(words) > 1 and words[-1] in ("-h", "--help"):
        return application(["help", *words[:-1]])
    return _run_sh(words)


def _is_own_role(words: list[str]) -> bool:
    """Whether the first word is a role of the mission's own, which comes before a command; run.sh and runs mean commands."""
    called = quick.COMPLETING in os.environ or any(
        os.environ.get(name) for name in ("HARNESS_LOOP", run_detection.INSIDE)
    )
    own = os.path.join(quick.here().path(names.ROLES), words[0] + ".py")
    return not called and words[-1] not in ("-h", "--help") and os.path.isfile(own)


def _folder_option(words: list[str]) -> list[str]:
    """Apply a leading `-C DIR`, as if started there, and return the other words. Inside a run the mission is always the
    run's."""
    while words[:1] == ["-C"]:
        words = _in_folder(words)
    return words


def _in_folder(words: list[str]) -> list[str]:
    if len(words) < 2 or not os.path.isdir(words[1]):
        remedy = "Put -C before the command: -C DIR status"
        if words[2:4] == ["schedule", "start"]:  # cron mails it to a person
            ways = layout.command("schedule add"), layout.command(f"schedule remove {' '.join(words[4:5])}")
            remedy = f"If it was moved, run there: {ways[0]}; if it was deleted, run anywhere: {ways[1]}"
        raise errors.UsageFault(f"There is no folder '{' '.join(words[1:2])}'. {remedy}")
    os.chdir(words[1])
    if not os.environ.get(run_detection.INSIDE):
        for name in ("HARNESS_PROJECT", "HARNESS_STATE"):
            os.environ.pop(name, None)
    if words[1] != ".":
        os.environ["HARNESS_AT"] = os.path.join(os.environ.get("HARNESS_AT", ""), words[1])
    return words[2:]


def _run_option(words: list[str]) -> list[str]:
    """Apply a leading `--run ID`, the run of this process, and return the other words."""
    if words[:1] != ["--run"] or len(words) < 2:
        return words
    if not os.path.isdir(quick.here().run(words[1]).folder):
        raise errors.UsageFault(f"There is no run '{words[1]}' in {quick.here().folders.project}.")
    os.environ[run_detection.INSIDE] = words[1]
    return words[2:]


def _run_sh(words: list[str]) -> int:
    """Start run.sh, which has the loop and the roles; raises UsageFault for a word that is neither command nor role."""
    script, where = os.path.join(layout.home(), "run.sh"), quick.here()
    if words and words[0] not in (*quick.LOOP_OPTIONS, *roles.known(where)):
        from harness.cli import help  # as above
        from harness.cli.main import COMMANDS  # as above

        raise help.no_such_word(where, words[0], COMMANDS)
    if where.folders.project != os.path.abspath(os.environ.get("HARNESS_PROJECT") or os.getcwd()):
        console.print_error(f"harness: the mission is in {where.folders.project}")
    os.environ["HARNESS_PROJECT"] = where.folders.project
    os.environ["HARNESS_PYTHON"] = sys.executable
    os.environ.setdefault("HARNESS_CALLED", "harness")
    os.execv("/usr/bin/env", ["env", "bash", script, *words])


if __name__ == "__main__":
    raise SystemExit(exits.leave(main()))
