"""Submodules as plain files of their pins: a folder without `.git`, which git takes for unchanged.

Their objects are in `modules/` of a person's git folder, else in a repository per address in the state folder, fetched once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import quote, unquote

from harness.base import encoding, redaction
from harness.git import contents, dotgit, settings
from harness.git.checkouts import _rendering, clones, placement
from harness.git.settings import RecordedSettings
from harness.state import files
from harness.state.layout import state_home

LIST, ACCEPTED = ".gitmodules", "refs/harness/modules/"  # ACCEPTED: and the blob of a LIST that a person accepted
GITLINKS = re.compile(r"(?<![^\0])160000 commit (\w+)\t([^\0]+)")
FILLED = ".submodules"  # beside a working folder: an index of each
FETCH = ("-c", "core.fsync=all", "-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=60", "fetch", "-q", "--")


class Submodule:
    """A submodule at its pin; `fault`: why it is not there, or "". `modules`: the git folders that may have its objects."""

    def __init__(self, path: str, pin: str, name: str, address: str, modules: list[str]) -> None:
        self.path, self.pin, self.name, self.address, self.modules, self.fault = path, pin, name, address, modules, ""
        self.store = os.path.join(state_home(), "submodules", encoding.digest(os.fsencode(address))[:32])

    def __str__(self) -> str:
        return redaction.mask(f"submodule {self.path} at {self.pin[:12]} ({self.address}): {self.fault or 'available'}")

    def git(self, *args: str, config: str = os.devnull, **more: str) -> tuple[int, bytes, str]:
        """One git call over its objects, with no configuration but `config`: (exit code, stdout, stderr as a line)."""
        lent = [f'"{_rendering.escaped(one)}/objects"' for one in self.modules if os.path.isdir(f"{one}/objects")]
        more |= {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(lent), "GIT_ALLOW_PROTOCOL": "https:ssh"}
        code, out, err = settings.alone(self.store, config, *args, extra={"GIT_DIR": self.store, **more})
        return code, out, " ".join(err.decode("utf-8", "replace").split())

    def obtain(self, recorded: RecordedSettings) -> str:
        """Have the objects, with a person's recorded configuration; returns "" or why not. 2 calls, 4 or 6 if fetched."""
        form = f"--object-format={'sha256' if len(self.pin) == 64 else 'sha1'}"
        with settings.HeldLock(f"{self.store}.lock"), clones.persons(recorded, self.store) as config:
            files.make_folder(self.store)
            said = self.git("init", "-q", "--bare", "--template=", form)[2]
            for wanted in ("", self.pin, "+refs/*:refs/*"):  # a server may give no commit by its id
                said = self.git(*FETCH, self.address, wanted, config=config)[2] if wanted else said
                if not self.git("cat-file", "-e", self.pin + "^{tree}")[0]:
                    return ""
        return f"not to be had: {said}. In your folder: git submodule update --init --recursive"

    def lay(self, folder: str) -> str:
        """Give the folder its files: all, and with a run of setup, if an unignored one differs. Returns "" or why not."""
        at, index = os.path.join(folder, self.path), f"{folder}{FILLED}/{quote(self.name, '')}@{self.pin}"
        own = {"GIT_WORK_TREE": at, "GIT_INDEX_FILE": index}
        whole = not (os.path.lexists(f"{at}/.git") or placement.blocked(folder, f"{self.path}/."))
        if whole and os.path.exists(index) and not any(self.git("ls-files", "-m", "-o", "--exclude-standard", **own)):
            return ""
        placement.write(folder, self.path, "100644", b"")  # in place of a folder, or of a link on the way to it
        for path in (at, f"{index}.lock"):
            files.remove(path)
        for path in (at, os.path.dirname(index)):
            files.make_folder(path)
        os.utime(f"{folder}/.git")
        code, _, said = self.git("read-tree", "--reset", "-u", self.pin, **own)
        return said if code else ""


def find(project: str, commit: str, recorded: RecordedSettings, folder: str = "") -> list[Submodule]:
    """The submodules of `commit`, each before those in it, laid into `folder`. 1 call without any. An address counts as
    .gitmodules was when a person last committed or accepted it, as all was when the configuration was recorded."""
    source = commit
    while one := contents.entries(project, source, [LIST], sizes=False).get(LIST):
        change = contents.last_change(project, f"{recorded.head}..{source}" if recorded.head else source, LIST)
        runs = change and (change.by_run or change.merge_of_ours) and not dotgit.commit_of(project, ACCEPTED + one.blob)
        if not change or not runs:
            origin = next((value for key, value in recorded.config if key == "remote.origin.url" and value), project)
            outer = Submodule("", commit, "", origin, [*dict.fromkeys(dotgit.folders(project))])
            outer.obtain(recorded)
            return [*_inside(outer, source, recorded, folder)]
        source = change.parents[-1]
    return []


def _inside(outer: Submodule, source: str, recorded: RecordedSettings, folder: str) -> Iterator[Submodule]:
    """The submodules of another one, with the .gitmodules of the commit `source`."""
    said = os.fsdecode(outer.git("config", "--blob", f"{source}:{LIST}", "--list", "-z")[1]).split("\0")
    known = {key: value for key, _, value in (pair.partition("\n") for pair in said)}
    names = {path: key[len("submodule.") : -len(".path")] for key, path in known.items() if key.endswith(".path")}
    for pin, path in GITLINKS.findall(os.fsdecode(outer.git("ls-tree", "-r", "-z", "--full-tree", outer.pin)[1])):
        name = names.get(path, "")
        address = _resolved(known.get(f"submodule.{name}.url", ""), outer.address)
        modules = [f"{one}/modules/{name}" for one in outer.modules]
        one = Submodule(os.path.join(outer.path, path), pin, os.path.join(outer.path, name), address, modules)
        safe = address and {"", ".", "..", ".git"}.isdisjoint(f"{path}/{name}".lower().split("/"))
        one.fault = one.obtain(recorded) if safe else "no .gitmodules of yours names it and a safe address"
        one.fault = one.fault or (one.lay(folder) if folder else "")
        yield one
        if not one.fault:
            yield from _inside(one, pin, recorded, folder)


def left_alone(folder: str) -> list[list[str | None]]:
    """The settings with which `git submodule update` leaves the submodules that were laid into the folder."""
    names = [unquote(name.rpartition("@")[0]) for name in files.names(folder + FILLED)]
    pairs = (("url", "."), ("active", "true"), ("update", "none"))
    return [[f"submodule.{name}.{key}", value] for name in names for key, value in pairs]


def _resolved(address: str, outer: str) -> str:
    """An address as git resolves it: one that begins with ./ or ../ against that of the outer repository."""
    above, below = re.findall(r"(?s)^((?:\.\.?/)*)(.*)", address)[0]
    parts = re.findall("[^/:]*[/:]*", f"{outer.rstrip('/')}/")[:-1]
    return "".join(parts[: len(parts) - above.count("../")]) + below if above else address
