"""Reads the texts of a workspace: the effective version at a commit, and from disk for layers outside the project."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.base import encoding
from harness.base.errors import BrokenFile
from harness.git import contents
from harness.state import files
from harness.state.layout import Layout
from harness.workspace import acceptance, places
from harness.workspace.acceptance import AcceptanceRow, AcceptedFiles, WaitingChange

MAX_BYTES = 1024 * 1024
MAX_FILES = 500  # of a skill outside the project


class WorkspaceText:
    """A text file of a workspace. `path`: as shown to people; `source`: as in a manifest; `name`: the folder or file
    name of the declaration; `beside`: the other files in its folder, relative to it."""

    def __init__(self, path: str, layer: str, text: str, name: str = "", beside: Collection[str] = ()) -> None:
        self.path, self.layer, self.text, self.name, self.beside = path, layer, text, name, list(beside)
        self.folder = os.path.dirname(path)


class WorkspaceReader:
    """The effective files of a project's workspace at a commit, below the requested paths, and those outside."""

    def __init__(
        self,
        layout: Layout,
        commit: str,
        user: str,
        more: Collection[str],
        known: dict[str, AcceptanceRow] | None = None,
    ) -> None:
        self.layout, self.commit, self.prefix = layout, commit, layout.folders.prefix if commit else ""
        self.of_user = places.folder_of_user(user)
        self.more = [os.path.normpath(name) for name in more]
        self.tops = places.tops(self.of_user, self.more)
        self.known = acceptance.newest(layout) if known is None else known
        below = [*(self.prefix + name for name in self.tops), *self._nested(), *self.known]
        self.accepted = self._at(dict.fromkeys(below))
        self.paths = [path[len(self.prefix) :] for path in self.accepted.files]
        self.faults: list[str] = []  # of skipped texts
        self.left_out: list[str] = []  # lines about what does not count
        self._read: dict[str, bytes] = {}

    def _nested(self) -> Iterable[str]:
        return contents.named(self.layout.folders.top, self.commit, places.INSTRUCTIONS, self.prefix)

    def _at(self, paths: Collection[str]) -> AcceptedFiles:
        return acceptance.at(self.layout, self.commit, paths, self.known)

    def lay_over(self, texts: Mapping[str, bytes]) -> None:
        """Put these files, by path in the project, over those that are there."""
        if not texts:
            return
        self.accepted = acceptance.OverlaidFiles(
            self.accepted, {self.prefix + name: data for name, data in texts.items()}
        )
        self.paths = list(dict.fromkeys([*self.paths, *texts]))

    @property
    def waiting(self) -> list[WaitingChange]:
        """Changes by runs that no person has accepted; git paths."""
        return self.accepted.waiting

    def waits(self, name: str) -> bool:
        """Whether a change of this file, or of one below it, waits for acceptance."""
        path = self.prefix + name
        return any(one.path == path or one.path.startswith(path + "/") for one in self.waiting)

    def add(self, names: Iterable[str]) -> None:
        """Make more files of the project readable. At most 1 git call."""
        new = [path for name in names if (path := self.prefix + name) not in {*self.accepted.files, *self.known}]
        self.accepted.files |= self._at(new).files

    def fetch(self, names: Iterable[str]) -> None:
        """Read these files of the project in one call, except too large ones."""
        known = self.accepted.files
        wanted = [path for name in names if name not in self._read and (path := self.prefix + name) in known]
        found = self.accepted.read(path for path in wanted if known[path].size <= MAX_BYTES)
        self._read |= {path[len(self.prefix) :]: data for path, data in found.items()}

    def text(self, name: str) -> str | None:
        """The text of a file of the project; None if absent. Links within the repository are followed."""
        known = self.accepted.files.get(self.prefix + name)
        if known is None:
            return None
        if known.size > MAX_BYTES:
            raise BrokenFile(name, f"{known.size} bytes are too many", remedy=f"At most {MAX_BYTES} are read.")
        self.fetch([name])
        data = self._read[name]
        if known.mode == contents.LINK:
            return self._linked(name, os.fsdecode(data))
        return encoding.decode(data, name)

    def _linked(self, name: str, target: str) -> str:
        """The target of a link of the project."""
        path = self._target(name, target)
        found = self._at([path] if path.partition("/")[0] not in ("", "..") else [])
        if path not in found.files or found.files[path].mode == contents.LINK:
            where = "repository" if self.commit else "folder"
            raise BrokenFile(
                name, f"the link leads to {target}, which is not a file of the {where}", remedy="Correct it."
            )
        return encoding.decode(found.read([path])[path], path)

    def _target(self, name: str, target: str) -> str:
        """What a link leads to, one step; git path."""
        return os.path.normpath(os.path.join(os.path.dirname(self.prefix + name), target))

    def skills(self) -> list[WorkspaceText]:
        """Every SKILL.md, lowest layer first."""
        outside = [self._read_or_left_out(self._outer_skill, *one) for one in self._outer(places.SKILLS)]
        tops = [*((places.PROJECT, one) for one in places.FOREIGN_SKILLS), *self._inner(places.SKILLS)]
        heads = [os.path.dirname(path) for path in self.paths if os.path.basename(path) == places.SKILL]
        inside = [(layer, folder) for layer, top in tops for folder in heads if os.path.dirname(folder) == top]
        self.fetch(f"{folder}/{places.SKILL}" for _, folder in inside)
        return [one for one in [*outside, *(self._read_or_left_out(self._skill, *one) for one in inside)] if one]

    def _read_or_left_out(self, read: Callable[..., WorkspaceText | None], *about: str) -> WorkspaceText | None:
        """A text; None for an unreadable one, which is added to `faults`."""
        try:
            return read(*about)
        except BrokenFile as broken:
            self.faults.append(broken.brief)
            return None

    def _skill(self, layer: str, folder: str) -> WorkspaceText:
        path = f"{folder}/{places.SKILL}"
        links = {name for name in self.paths if self.accepted.files[self.prefix + name].mode == contents.LINK}
        beside = [name[len(folder) + 1 :] for name in self.paths if name.startswith(folder + "/")]
        kept = [name for name in beside if name != places.SKILL and f"{folder}/{name}" not in links]
        return WorkspaceText(path, layer, self.text(path) or "", os.path.basename(folder), kept)

    def fingerprints(self, folder: str) -> dict[str, str]:
        """{path: digest} of the files and links below a folder of the project."""
        data = self.accepted.read(self.beside(folder))
        return {path: encoding.digest(one) for path, one in data.items()}

    def beside(self, folder: str) -> list[str]:
        """The files and links below a folder of the project, by git."""
        return [path for path in self.accepted.files if path.startswith(f"{self.prefix}{folder}/")]

    def _outer_skill(self, layer: str, folder: str, name: str) -> WorkspaceText | None:
        at, path = os.path.join(folder, name), os.path.join(folder, name, places.SKILL)
        text = _text_of(path)
        return None if text is None else WorkspaceText(path, layer, text, name, list(_beside(at)))

    def subagents(self) -> list[WorkspaceText]:
        """Every declaration of a subagent, lowest layer first."""
        found = [self._read_or_left_out(_outer_subagent, *one) for one in self._outer(places.SUBAGENTS)]
        for layer, top in self._inner(places.SUBAGENTS):
            below = [path for path in self.paths if os.path.dirname(path) == top and _declares(os.path.basename(path))]
            self.fetch(below)
            found += [self._read_or_left_out(self._subagent, layer, path) for path in below]
        return [one for one in found if one]

    def _subagent(self, layer: str, path: str) -> WorkspaceText:
        return WorkspaceText(path, layer, self.text(path) or "", os.path.basename(path)[:-3])

    def tools(self) -> list[WorkspaceText]:
        """Every tools.json, the project's before the user's."""
        named = [(layer, name) for layer, name in self._inner(places.TOOLS) if name in self.paths]
        return [WorkspaceText(name, layer, self.text(name) or "") for layer, name in named]

    def _inner(self, name: str) -> list[tuple[str, str]]:
        """(layer, path) of a folder or file of the project, and of the user's own."""
        own = [(places.OF_USER, f"{self.of_user}/{name}")] if self.of_user else []
        return [(places.PROJECT, name), *own]

    def _outer(self, what: str) -> Iterator[tuple[str, str, str]]:
        """(layer, folder, name) of these entries in the outer layers."""
        for layer, top in places.outer():
            folder = os.path.join(top, what)
            names = files.names(folder) if os.path.isdir(folder) else []
            yield from ((layer, folder, name) for name in names if not name.startswith((".", "_")))


def parse_all(
    parse: Callable[[str, str, str], dict[str, Any]], texts: Sequence[WorkspaceText]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """({path: result of `parse`}, a line for each invalid text, which is skipped)."""
    found, faults = {}, []
    for one in texts:
        try:
            found[one.path] = parse(one.text, one.path, one.name)
        except BrokenFile as broken:
            faults.append(broken.brief)
    return found, faults


def _outer_subagent(layer: str, folder: str, name: str) -> WorkspaceText | None:
    path = os.path.join(folder, name)
    text = _text_of(path) if _declares(name) else None
    return None if text is None else WorkspaceText(path, layer, text, name[:-3])


def _declares(name: str) -> bool:
    return name.endswith(places.DECLARATION) and name != "README.md"


def _text_of(path: str) -> str | None:
    """A text file on disk; None if absent."""
    if not os.path.isfile(path):
        return None
    if os.path.getsize(path) > MAX_BYTES:
        raise BrokenFile(path, "the file is too large", remedy=f"At most {MAX_BYTES} bytes are read.")
    return files.read_text(path)


def _beside(folder: str) -> Iterator[str]:
    """The other files of a skill on disk, at most MAX_FILES."""
    found = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in sorted(names))
    for path, _ in zip(found, range(MAX_FILES), strict=False):
        if os.path.basename(path) != places.SKILL and not os.path.islink(path):
            yield os.path.relpath(path, folder)
