"""The environment variables of a run's processes: the passing part of the user's (process/variables.txt), and the
harness's."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping

from harness.base.faults import NOT_PASSED
from harness.git.checkouts import submodules
from harness.mission.check_environment import CheckEnvironment
from harness.process import drivers, variables
from harness.process.confine import PRIVATE, Confinement
from harness.process.supervise import TAG
from harness.state import names
from harness.state.layout import Layout
from harness.workplace import home_layer
from harness.workplace.run_detection import INSIDE

UNATTENDED = {
    "CI": "1",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
MAX_SHOWN_NAMES = 2
ABSOLUTE, OWN_FOLDERS = re.compile(r"(?<![\w.~/-])/(?!/)[\w.+@%=~/-]+"), tuple(f"{top}/" for top in PRIVATE)


def withheld(base: Mapping[str, str], passed: Collection[str] = (), needs: Collection[str] = ()) -> list[str]:
    """The sorted names of withheld variables of `base` that are worth reporting at the start of a mission."""
    return [name for name in _withheld(base, passed, needs) if not variables.listed(name, "not at the start")]


def _withheld(base: Mapping[str, str], passed: Collection[str], needs: Collection[str]) -> list[str]:
    gone = base.keys() - variables.passing(base, passed, needs).keys() - UNATTENDED.keys()
    return sorted(name for name in gone if not variables.listed(name, "ours", "never"))


def not_passed(names: list[str]) -> str:
    """A sentence with the first of these names; "" for none."""
    more = f" and {len(names) - MAX_SHOWN_NAMES} more" if len(names) > MAX_SHOWN_NAMES else ""
    return f"{NOT_PASSED}{', '.join(names[:MAX_SHOWN_NAMES])}{more}; see [env] pass" if names else ""


def mentioned(text: str, base: Mapping[str, str], passed: Collection[str] = (), needs: Collection[str] = (),
              known: Confinement | None = None) -> str:  # fmt: skip
    """`not_passed` of the withheld names that an output mentions, and why its confinement hides a path in it. A path in a folder
    that a run has of its own counts if the host has it, too."""
    words, tops = {*re.findall(r"\w+", text)}, (os.path.expanduser("~"), *PRIVATE)
    lacked = not_passed([name for name in _withheld(base, passed, needs) if name in words])
    paths = [path.rstrip("/.") for path in dict.fromkeys(ABSOLUTE.findall(text))]
    there = (path for path in paths if path not in tops and (os.path.lexists(path) or not path.startswith(OWN_FOLDERS)))
    return "; ".join(filter(None, [lacked, known.hides(there) if known else ""]))


def explained(output: str, place: CheckEnvironment) -> str:
    """The output of a program that failed in `place`, with a line about what it mentions: withheld variables, a hidden path."""
    line = mentioned(output, os.environ, place.passed, known=place.confined())
    return f"{output.rstrip()}\n{line}\n" if line else output


def plain(base: Mapping[str, str], tag: str, passed: Collection[str] = ()) -> dict[str, str]:
    """The environment of a check. Of the harness's variables it has only the tag, which identifies leftover processes."""
    return _unattended(base, tag, passed)


def of_person(base: Mapping[str, str]) -> dict[str, str]:
    """The environment of a person's own program: theirs, without the harness's variables."""
    return {key: value for key, value in base.items() if not variables.listed(key, "ours")}


def _unattended(
    base: Mapping[str, str], tag: str, passed: Collection[str], needs: Collection[str] = ()
) -> dict[str, str]:
    own = os.path.join(sys.prefix, "bin") if sys.prefix != sys.base_prefix else ""
    path = [folder for folder in base.get("PATH", os.defpath).split(os.pathsep) if folder != own]
    kept = variables.passing(base, passed, needs)
    return {**kept, **UNATTENDED, "PATH": os.pathsep.join(path), TAG: tag}


def of_check(base: Mapping[str, str], place: CheckEnvironment) -> dict[str, str]:
    """The environment of a check, a service or setup in `place`."""
    env = plain(base, place.tag, place.passed)
    if place.git:
        env = {key: value for key, value in env.items() if not key.startswith("GIT_CONFIG")}
        env |= {"GIT_CONFIG_GLOBAL": place.git, "GIT_CONFIG_NOSYSTEM": "1"}
    env |= drivers.variables(submodules.left_alone(place.root))
    return home_layer.variables(env, place.home, os.path.expanduser("~")) if place.home else env


def of_agent(
    base: Mapping[str, str],
    tag: str,
    layout: Layout,
    run_id: str,
    passed: Collection[str] = (),
    needs: Collection[str] = (),
) -> dict[str, str]:
    """The environment of an agent: that of a check, plus what it `needs`, the harness command on PATH and the id of its run."""
    env = _unattended(base, tag, passed, needs)
    env["PATH"] = os.path.dirname(layout.path(names.SHIM)) + os.pathsep + env["PATH"]
    return {**env, INSIDE: run_id}
