"""The `harness` command: quick doors first, because they are called thousands of times; the rest by click."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main() -> int:
    """Dispatch the command line; what is no command belongs to run.sh. Returns the exit code."""
    from harness.base import bundle  # here, because the path above must stand first

    bundle.use()
    from harness.base.exits import guarded, spare_collector

    spare_collector()
    return guarded(_dispatch)


def _dispatch() -> int:
    from harness.cli import quick

    words = _run_option(sys.argv[1:])
    if words and words[0] in quick.QUICK and "--help" not in words:
        return quick.QUICK[words[0]](words[1:])
    from harness.cli.main import COMMANDS, application

    if not words or (words[0] not in COMMANDS and words[0] not in ("-h", "--help")):
        return _run_sh(words)
    return application(words)


def _run_option(words: list[str]) -> list[str]:
    """`--run ID` before a command says in which run we are; the rest of the words are given back."""
    if words[:1] != ["--run"] or len(words) < 2:
        return words
    from harness.base import errors
    from harness.cli.quick import here
    from harness.integrity import inside

    if not os.path.isdir(here().run(words[1]).folder):
        raise errors.UsageFault(f"There is no run '{words[1]}' in {here().project}.")
    os.environ[inside.INSIDE] = words[1]
    return words[2:]


def _run_sh(words: list[str]) -> int:
    """Loop, --once and roles are run.sh's; a word that is neither command nor role is a usage fault."""
    from harness.base import errors
    from harness.model import roles
    from harness.store import layout

    script = os.path.join(layout.home(), "run.sh")
    here = layout.Layout(os.environ.get("HARNESS_PROJECT") or os.getcwd())
    if words and words[0] != "--once" and words[0] not in roles.known(here):
        from harness.cli.main import COMMANDS

        shown = [name for name in COMMANDS if name not in ("ending", "hold")]
        there = f"Roles here: {', '.join(roles.known(here))}. Commands: {', '.join(shown)}."
        raise errors.UsageFault(f"There is no role and no command '{words[0]}'. {there}")
    os.environ["HARNESS_PYTHON"] = sys.executable
    os.environ.setdefault("HARNESS_CALLED", "harness")
    os.execv("/usr/bin/env", ["env", "bash", script, *words])


if __name__ == "__main__":
    _code = main()
    from harness.base.exits import leave

    raise SystemExit(leave(_code))
