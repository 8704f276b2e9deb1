"""`python -m harness.run SCRIPT [FEATURE]` runs the script of a role, as run.sh does."""

from __future__ import annotations

import runpy
import sys

from harness.base import errors
from harness.base.exits import guarded


def main() -> int:
    """Run the script that is the first argument; one that cannot start ends with 70 and one line."""
    del sys.argv[0]
    return guarded(_run, f"{sys.argv[0]} cannot start")


def _run() -> int:
    runpy.run_path(sys.argv[0], run_name="__main__")
    return errors.DONE


if __name__ == "__main__":
    raise SystemExit(main())
