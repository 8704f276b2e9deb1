"""Starts git drivers (filters and merge drivers of the configuration) confined.

An agent can choose drivers by an attributes file in its worktree, where drivers also start: files that it leaves there
(`name.py` for `python -m name`) may then run. So git starts `python … start_driver` instead of each driver, which
confines itself and becomes the driver (see workplace/confine.py).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Collection, Sequence

from harness.process import confine, spawn

Config = list[list[str | None]]

PLACEHOLDERS = {"filter.clean": "f", "filter.smudge": "f", "filter.process": "", "merge.driver": "OABLPSXY"}
QUOTED = "fPSXY"  # placeholders that git quotes: gitattributes(5)
LFS = {"clean", "smudge", "filter-process", "--", "--skip", "%f"}
LFS_PROGRAMS = ("lfs.extension.", "lfs.customtransfer.")  # git-lfs would start these itself
REFUSED = "The driver '"
NOT_RUN = (
    REFUSED
    + "{command}' of your git configuration does not run: nothing confines it here. Install bubblewrap, or write "
    'confine = "off" in .harness/config.toml; see docs/confinement.md.'
)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START = f"import sys; sys.path.insert(0, {ROOT!r}); from harness.workplace import confine as c; c.start_driver(*sys.argv[1:])"


def is_driver(key: str | None) -> bool:
    """Whether the value of this key is a program that git starts for a file: a filter or a merge driver."""
    return str(key).count(".") > 1 and _kind(str(key)) in PLACEHOLDERS


def _kind(key: str) -> str:
    return f"{key.partition('.')[0]}.{key.rpartition('.')[2]}"


def confined(config: Config, large: str, trees: Collection[str], unconfined: bool) -> Config:
    """The (key, value) pairs of a configuration with each driver started confined; git-lfs alone may write in `large`.

    Without confinement, drivers other than git-lfs do not run, and git fails on a file that needs one; with
    `unconfined` they run.
    """
    if not any(is_driver(key) for key, _ in config):
        return config
    tier, own = confine.available(), not any(str(key).startswith(LFS_PROGRAMS) for key, _ in config)
    made: Config = []
    for key, value in config:
        lfs = own and _is_git_lfs(value or "", trees)
        if not value or not is_driver(key) or (tier == confine.NONE and (lfs or unconfined)):
            made.append([key, value])
            continue
        made.append([key, _command(str(key), value, tier, large if lfs else "")])
        if tier == confine.NONE and _kind(str(key)) != "merge.driver":  # git needs both directions of a required filter
            both = {"required": "true", "clean": made[-1][1], "smudge": made[-1][1]}
            made += [[f"{str(key).rpartition('.')[0]}.{name}", word] for name, word in both.items()]
    return made


def variables(config: Config) -> dict[str, str]:
    """These pairs as variables for a git call; they override all other configuration."""
    found = {"GIT_CONFIG_COUNT": str(len(config))} if config else {}
    for at, (key, value) in enumerate(config):
        found |= {f"GIT_CONFIG_KEY_{at}": str(key), f"GIT_CONFIG_VALUE_{at}": "true" if value is None else value}
    return found


def _command(key: str, command: str, tier: str, large: str) -> str:
    """The shell command with which git starts this one confined; git substitutes the placeholders."""
    path = os.environ.get("PATH", os.defpath)  # git itself has a PATH without the trees
    placeholders = [f"%{letter}" for letter in PLACEHOLDERS[_kind(key)]]
    words = shlex.join([sys.executable, "-I", "-S", "-c", START, tier, large, path, command])
    if tier == confine.NONE:  # 129: a lower code would mean a merge conflict
        words = f"echo {shlex.quote(NOT_RUN.format(command=command))} >&2; exit 129; :"
    return " ".join([words.replace("%", "%%") if placeholders else words, *placeholders])


def expand(command: str, values: Sequence[str]) -> str:
    """Substitute the placeholders of a command, as git does."""
    known = dict(zip("f" if len(values) == 1 else PLACEHOLDERS["merge.driver"], values, strict=False))
    known |= {"%": "%", **{letter: shlex.quote(known[letter]) for letter in QUOTED if letter in known}}
    return re.sub("%(.)", lambda found: known.get(found[1], found[0]), command, flags=re.DOTALL) if values else command


def _is_git_lfs(command: str, trees: Collection[str]) -> bool:
    """Whether this starts only git-lfs, from outside the trees; git finds it there by name."""
    name, *rest = command.replace("git lfs ", "git-lfs ", 1).split() or [""]
    known = os.path.basename(name) == "git-lfs" and os.path.isabs(name) and not spawn.is_in(name, trees)
    return (known or name == "git-lfs") and {*rest} <= LFS
