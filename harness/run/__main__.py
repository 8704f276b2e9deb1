"""`python -m harness.run SCRIPT [FEATURE]` runs the script of a role, as run.sh does."""

from __future__ import annotations

import os
import runpy
import signal
import sys

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until `guarded`: Ctrl-C while modules load prints no traceback

from harness.base import errors
from harness.base.exits import guarded
from harness.run import workspace_inputs
from harness.state.layout import Layout
from harness.workplace import run_detection


def main() -> int:
    """Run the script in the first argument; one that cannot start ends with exit code 70 and one line."""
    del sys.argv[0]
    return guarded(_run, f"{sys.argv[0]} cannot start")


def _run() -> int:
    """The script may be the repository's own."""
    layout = Layout(os.environ.get("HARNESS_PROJECT") or os.getcwd(), os.environ.get("HARNESS_STATE", ""))
    if not run_detection.run_id(layout):  # else the run that it wants is refused
        workspace_inputs.check_state(layout)
    runpy.run_path(sys.argv[0], run_name="__main__")
    return errors.DONE


if __name__ == "__main__":
    raise SystemExit(main())
