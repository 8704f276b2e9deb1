"""Implicit inputs of a check: settings of its tools, and programs of a PATH that begins in the project.
An edit of settings counts if it changes or removes entries that may affect this check; additions are the work itself,
unless they override something. Pure, except for the lookup of the machine's programs.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from harness.proof import _file_kinds
from harness.proof._patches import FilePatch

TOOLS = {  # {tool: files that it reads by its own rules in its working folder}
    r"g?make": r"(GNUm|M|m)akefile|.+\.mk",
    r"np[mx]|pnpm|yarn|bun": r"package\.json|\.npmrc|\.mocharc\.\w+|(jest|vitest|ava|karma|playwright|cypress)\.config\.\w+",
    r"pytest|py\.test|tox|nox": r"(.+/)?conftest\.py|pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml",
    r"cargo": r"Cargo\.toml|\.cargo/config(\.toml)?",
    r"go": r"go\.(mod|work)",
}
STARTS = [(re.compile(rf"(?<![\w./-])({tool})(?![\w./-])"), re.compile(files)) for tool, files in TOOLS.items()]
MAKES = STARTS[0][1]
RUNNERS = ("jest", "mocha", "ava", "tap", "c8", "nyc")  # their settings may be in package.json, next to the scripts
# These tables are about building, not testing.
CRATE = {"package", *(kind + "dependencies" for kind in ("", "dev-", "build-")), "features", "bin"}
MODULES = re.compile(r"\s*(module|go|toolchain|require|//|\)|$|[\w./~-]+ v\d)")  # lines of go.mod: dependencies
RULE = re.compile(r"(?:export\s+)?([\w./%-]+)\s*(?::|[:?+!]?=)")  # of a makefile: a target, or a variable
OF_MAKE = {"SHELL", "MAKEFLAGS", ".SHELLFLAGS", ".IGNORE", ".RECIPEPREFIX"}
BETWEEN = re.compile(r"\s*(#|$|(ifn?(eq|def)|else|endif)\b)")  # what may stand between a rule and its recipe
WORD = re.compile(r"[\w:.-]+")
INCLUDE = re.compile(r"^[-s]?include\s+(.+)$", re.MULTILINE)
ON_PATH = re.compile(r"\bPATH=[\"']?([^\s;&|\"']+)")


def included(makefile: str) -> list[str]:
    """The files that a makefile includes by name."""
    return [name for names in INCLUDE.findall(makefile) for name in names.split()]


def eased(file: FilePatch, seen: str, check: str, more: Collection[str] = ()) -> bool:
    """Whether a tool of the check reads this file (`seen`: its path from the check's folder), and the change removes
    entries that may affect it. `more`: files included by its makefile."""
    folders = sorted({"", *(word + "/" for word in _file_kinds.words(check))}, reverse=True)
    name = next(seen.removeprefix(one) for one in folders if seen.startswith(one))
    tools = [read for tool, read in STARTS if tool.search(check)]
    if not any(one.fullmatch(name) or (one is MAKES and name in more) for one in tools):
        return False
    old, new = (_heeded(name, lines, check) for lines in (file.old, file.new))
    return any(not value <= new.get(key, set()) for key, value in old.items()) or _takes_over(file, name)


def _heeded(name: str, lines: list[str], check: str) -> dict[str, set[str]]:
    """{section: entries} of these settings that may affect the check; {} for an unparsable file."""
    if name == "package.json":
        try:
            return _scripts(json.loads("\n".join(lines).lstrip("\ufeff")), check)
        except (ValueError, AttributeError):
            return {}
    if name.endswith(("akefile", ".mk")):
        return _rules(lines)
    found, section = dict[str, set[str]](), ""
    for line in map(str.strip, lines):
        if line.startswith("[") and name.endswith((".toml", ".ini", ".cfg", "config")):
            section = line.strip("[] ")
        elif line and line[0] not in "#;" and not (name.startswith("go.") and MODULES.match(line)):
            found.setdefault(section, set()).add(line)
    if name == "Cargo.toml":
        return {key: value for key, value in found.items() if key.split(".")[0] not in CRATE}
    mixed = name in ("pyproject.toml", "setup.cfg", "tox.ini")
    return {key: value for key, value in found.items() if not mixed or "pytest" in key or key.startswith("testenv")}


def _scripts(value: dict[str, Any], check: str) -> dict[str, set[str]]:
    """The scripts that the check starts, those that they start, and the settings of runners."""
    scripts, started = value.get("scripts", {}), set(WORD.findall(check))
    for _ in scripts:
        started |= {word for key in started & {*scripts} for word in WORD.findall(scripts[key])}
        started |= {before + key for before in ("pre", "post") for key in started & {*scripts}}
    found = {key: {str(scripts[key])} for key in started & {*scripts}}
    return found | {key: {json.dumps(value[key])} for key in RUNNERS if key in value}


def _takes_over(file: FilePatch, name: str) -> bool:
    """Whether a new line overrides an older one in a makefile, or a module in go.mod."""
    if name.startswith("go."):
        return not all(map(MODULES.match, file.added))
    if not name.endswith(("akefile", ".mk")):
        return False
    old, new = (Counter(_defined(lines)) for lines in (file.old, file.new))
    return any(new[name] > old[name] for name in {*old, *OF_MAKE})


def _defined(makefile: list[str]) -> Iterator[str]:
    """The variables and targets with recipes that a makefile defines; a rule without a recipe only adds prerequisites."""
    lines = [line for line in makefile if line.startswith("\t") or not BETWEEN.match(line)]
    for line, following in itertools.pairwise([*lines, ""]):
        if (found := RULE.match(line)) and (not _is_plain_rule(line) or following.startswith("\t")):
            yield found[1]


def _is_plain_rule(line: str) -> bool:
    """Whether a line of a makefile has targets and prerequisites, and nothing else."""
    return ":" in line and not line.startswith("\t") and not any(sign in line for sign in "=;\\")


def _rules(makefile: list[str]) -> dict[str, set[str]]:
    """{targets: their prerequisites and lines of recipes} of a makefile; below "" are all other lines."""
    found, targets = dict[str, set[str]](), ""
    for line in makefile:
        text, (head, _, needed) = line.strip(), line.partition(":")
        if _is_plain_rule(line) and not BETWEEN.match(line):
            targets = head.strip()
            found.setdefault(targets, set()).update(f": {word}" for word in needed.split())
        elif line.startswith("\t") and text:
            found.setdefault(targets, set()).add(text)
        elif text and text[0] != "#":
            targets = "" if "=" in line else head.strip() if ":" in line else targets
            found.setdefault("", set()).add(text)
    return found


def shadows(path: str, check: str, outside: str) -> bool:
    """Whether this file shadows a program of the machine for the check, since its PATH, or the one `outside`, has a
    folder of the project."""
    entries = [entry for text in (outside, *ON_PATH.findall(check)) for entry in text.split(":")]
    ours = {re.sub(r"^(\$PWD|\$\{PWD\}|\.)/|/$", "", entry) for entry in entries if entry and entry[0] not in "/~"}
    theirs = (os.path.join(entry, os.path.basename(path)) for entry in entries if entry.startswith("/"))
    return os.path.dirname(path) in ours and any(os.access(one, os.X_OK) for one in theirs)
