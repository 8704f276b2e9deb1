"""Each entry in a place of a workspace is what an agent gets, or it is named with the reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.mission import config
from harness.mission.config import Config
from harness.state.layout import Layout
from harness.workspace import snapshot
from harness.workspace.snapshot import WorkspaceSnapshot
from tests.missions import House
from tests.workspace.workspaces import person, skill

USER = "al"
SKILLS = ("skills", ".agents/skills", ".claude/skills", f"users/{USER}/skills", "OUTER/skills")
SUBAGENTS = ("subagents", f"users/{USER}/subagents", "OUTER/subagents")
OTHERS = ("MEMORY.md", "GEMINI.md")
FILES = ("AGENTS.md", "CLAUDE.md", "docs/STYLE.md", "packages/web/AGENTS.md", "packages/web/CLAUDE.md", *OTHERS)
TOOLS = ("tools.json", f"users/{USER}/tools.json", ".mcp.json")
SETTINGS = Config(user=USER, workspace={"additional_context": ["docs/STYLE.md"], "max_tokens": 90_000})


def _file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _link(path: Path, text: str, target: Path) -> Path:
    """A link, to a file with this text, or to the folder of a skill."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name == "SKILL.md":
        _file(target / "SKILL.md", text)
        path.parent.rmdir()
        path = path.parent
    else:
        _file(target, text)
    path.symlink_to(os.path.relpath(target, path.parent))
    return path


def _inside(path: Path, text: str, top: Path) -> Path:
    return _link(path, text, top / "shared" / str(path).replace("/", "_"))


def _outside(path: Path, text: str, top: Path) -> Path:
    return _link(path, text, top.parent / "elsewhere" / str(path).replace("/", "_"))


def _dangling(path: Path, text: str, top: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("gone")
    return path


def _case(path: Path, text: str, top: Path) -> Path:
    return _file(path.with_name(path.name.swapcase()), text)


def _deeper(path: Path, text: str, top: Path) -> Path:
    at = path.parent.parent / "deep" / path.parent.name if path.name == "SKILL.md" else path.parent / "deep"
    return _file(at / path.name, text)


def _empty(path: Path, text: str, top: Path) -> Path:
    return _file(path, "")


def _hollow(path: Path, text: str, top: Path) -> Path:
    """A folder that has nothing, as that of a submodule that is not filled."""
    at = path.parent if path.name == "SKILL.md" else path.with_suffix("")
    at.mkdir(parents=True, exist_ok=True)
    return at


def _bytes(path: Path, text: str, top: Path) -> Path:
    _file(path, "").write_bytes(text.encode() + b"\xff")
    return path


WHAT: dict[str, Callable[[Path, str, Path], Path]] = {
    "file": lambda path, text, top: _file(path, text),
    "link in": _inside,
    "link out": _outside,
    "dangling": _dangling,
    "wrong case": _case,
    "nested": _deeper,
    "empty": _empty,
    "empty folder": _hollow,
    "not UTF-8": _bytes,
}
FATAL = {  # a file that instructs or restricts, and cannot be read, ends every run with its name
    "link out": ("AGENTS.md", "docs/STYLE.md", *TOOLS[:2]),
    "dangling": ("AGENTS.md", "docs/STYLE.md", *TOOLS[:2]),
    "not UTF-8": ("AGENTS.md", "docs/STYLE.md", *TOOLS[:2]),
    "empty": TOOLS[:2],
}


def _texts() -> dict[str, str]:
    """{place: text with a word of its own} of each place."""
    found = {f"{one}/s{at}/SKILL.md": skill(f"s{at}") for at, one in enumerate(SKILLS)}
    found |= {f"{one}/a{at}.md": "---\ndescription: d\n---\nDo.\n" for at, one in enumerate(SUBAGENTS)}
    found |= {one: f"Words of {one}.\n" for one in (*FILES, "knowledge/fish.md")}
    found |= {one: f'{{"deny": ["t{at}"]}}' for at, one in enumerate(TOOLS[:2])}
    return found | {TOOLS[2]: '{"mcpServers": {"maps": {"command": "m"}}}'}


def _made(top: Path, outer: Path, what: str) -> dict[str, str]:
    """{path as it is shown: its place} of entries of one kind in every place where they can be."""
    made = {}
    for place, text in _texts().items():
        alone = place in (*TOOLS, *FILES)
        elsewhere = (what == "nested" and not place.endswith(("AGENTS.md", "CLAUDE.md"))) or what == "empty folder"
        other = what == "wrong case" and place in OTHERS
        if place in FATAL.get(what, ()) or (alone and elsewhere) or other:
            continue  # such a file is the project's own, or the next test's
        at = outer / place.removeprefix("OUTER/") if place.startswith("OUTER") else top / place
        path = WHAT[what](at, text, top)
        made[str(path) if place.startswith("OUTER") else os.path.relpath(path, top)] = place
    return made


def _gets(found: WorkspaceSnapshot, path: str, place: str) -> bool:
    """Whether an agent gets this entry: its words, its path to read, or what it declares."""
    texts = "".join(one.text for one in found.sections)
    if place in TOOLS[:2]:
        return bool(found.tools and _texts()[place][11:13] in found.tools.deny)
    if place == TOOLS[2]:
        return bool(found.tools and found.tools.servers)
    if "skills/" in place:
        return any(path in (one.folder, one.path) and f"- {one.name}:" in texts for one in found.skills)
    if "subagents/" in place:
        return any(one.path == path for one in found.subagents)
    return f"- {path}\n" in texts or (path == place and f"Words of {place}." in texts)


def _setting(house: House, what: str) -> tuple[Path, dict[str, str]]:
    """A mission with these entries, for a user who has a layer; (its folder, the entries)."""
    top, outer = house.project, Path(house.env["HOME"], ".config/harness")
    _file(top / "knowledge/KNOWLEDGE.md", "Sea.\n")
    made = _made(top, outer, what)
    house.config('agent = "scripted"', f'user = "{USER}"', "[workspace]", 'additional_context = ["docs/STYLE.md"]')
    person(house, {})
    return top, made


@pytest.mark.parametrize("what", WHAT)
def test_each_entry_of_each_place_is_given_or_named(house: House, what: str) -> None:
    """In `workspace show -v` of a mission, and in a folder without git; nothing that is given is named as not read."""
    top, made = _setting(house, what)
    out = house.harness("workspace", "show", "-v", "--sizes").out.split("\n")
    lines = {line[11:].split(":")[0].split(", line ")[0] for line in out if line.startswith(("not read ", "left out "))}
    settings = config.load(house.layout)
    on_disk = Layout(str(top))
    for commit, layout in ((house.head(), house.layout), ("", on_disk)):
        found = snapshot.gather(layout, commit, settings, snapshot.WORDS)
        unread = {one for paths in snapshot.unused(layout, commit, settings).values() for one in paths}
        named = {line.split(":")[0].split(", line ")[0] for line in (*found.faults, *found.left_out)} | unread
        given = {path for path, place in made.items() if _gets(found, path, place)}
        assert {path for path in made if path not in given | named} == set()
        assert given & unread == set()
        assert not commit or unread <= lines
        assert what != "file" or given == {*made} - {"packages/web/CLAUDE.md", *OTHERS}


@pytest.mark.parametrize(("what", "place"), [(what, place) for what, found in FATAL.items() for place in found])
def test_a_file_that_must_be_read_and_cannot_ends_with_its_name(tmp_path: Path, what: str, place: str) -> None:
    """It instructs or restricts, so that no run goes on without it."""
    top = tmp_path / "project"
    WHAT[what](top / place, _texts()[place], top)
    with pytest.raises(BrokenFile, match=place):
        snapshot.unused(Layout(str(top)), "", SETTINGS)


def test_the_reason_says_what_to_do(house: House) -> None:
    """One for each cause: a submodule that is not filled, a dependency, a name twice, what waits, what is not committed."""
    (house.project / "skills/sub").mkdir(parents=True)
    names = ("AGENTS.md", "node_modules/a/AGENTS.md", "x/vendor/AGENTS.md", "x/AGENTS.md", "packages/web/CLAUDE.md")
    texts: dict[str, str | None] = {name: f"{name}\n" for name in names}
    texts |= {
        "skills/one/SKILL.md": skill("one"),
        ".agents/skills/one/SKILL.md": skill("one"),
        ".agents/skills/fix/SKILL.md": skill("fix"),
        "skills/_x/SKILL.md": "x",
    }
    texts |= {
        "skills/README.md": "r",
        "skills/group/two/SKILL.md": skill("two"),
        "knowledge/a.md": "a",
        "MEMORY.md": "m",
    }
    for name, target in (("CLAUDE.md", "AGENTS.md"), (".claude/skills", "../.agents/skills"), ("subagents", "/gone")):
        (house.project / name).parent.mkdir(exist_ok=True)
        (house.project / name).symlink_to(target)
    person(house, texts)
    house.write("skills/waits/SKILL.md", skill("waits"))
    house.write("skills/waits/run.sh", "true\n")
    house.git("add", "-A")
    house.git("commit", "-qm", "waits")
    house.write("skills/new/SKILL.md", skill("new"))
    found = snapshot.gather(house.layout, house.head(), Config(), snapshot.WORDS)
    assert (found.nested, [one.name for one in found.skills]) == (["x/AGENTS.md"], ["fix", "one"])
    add = "name it in [workspace] additional_context, or import it in CLAUDE.md"
    reasons = snapshot.unused(house.layout, house.head(), Config())
    assert reasons == {
        f"in a folder of dependencies: {add}": ["node_modules/a/AGENTS.md", "x/vendor/AGENTS.md"],
        "only the CLAUDE.md at the top counts: import it there": ["packages/web/CLAUDE.md"],
        "a link, or behind one: what it leads to counts only where it is": [".claude/skills", "subagents"],
        "a skill is a folder directly in that of skills, with a valid, accepted SKILL.md, and no other of its name": [
            ".agents/skills/one/SKILL.md",
            "skills/README.md",
            "skills/group/two/SKILL.md",
            "skills/waits/SKILL.md",
            "skills/waits/run.sh",
        ],
        "the folder counts only with a KNOWLEDGE.md": ["knowledge/a.md"],
        "not committed in this repository": ["skills/new/SKILL.md"],
        "empty, or a submodule, whose files do not count: copy them": ["skills/sub"],
        f"not one of the files that count: {add}": ["MEMORY.md"],
    }
    off = Config(workspace={"skills": False})
    assert "skills/one/SKILL.md" in snapshot.unused(house.layout, house.head(), off)["[workspace] skills = false"]


@pytest.mark.parametrize("name", [".agents", ".agents/skills", "skills", "subagents", "knowledge", "OUTER/skills"])
@pytest.mark.parametrize("what", ["file", "link in", "dangling"])
def test_what_lies_in_place_of_a_folder_is_named(bare: House, name: str, what: str) -> None:
    """A file, or a link of the project, ends nothing and is not read."""
    top = bare.folder / "project"
    top.mkdir()
    at = Path(bare.env["HOME"], ".config/harness/skills") if name.startswith("OUTER") else top / name
    WHAT[what](at, "text\n", top)
    unread = snapshot.unused(Layout(str(top)), "", Config())
    assert [path for paths in unread.values() for path in paths] == [str(at) if name.startswith("OUTER") else name]
