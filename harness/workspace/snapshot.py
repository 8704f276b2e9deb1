"""Gathers an agent's workspace snapshot: prompt sections within one budget, skills, subagents and tools.

Each run makes its own. `workspace.json` in the run's folder keeps the parts outside the prompt.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from harness.base import encoding, schema
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.mission import config
from harness.mission.config import Config, WorkspaceTable
from harness.state import files, names, objects
from harness.state.documents import ended
from harness.state.files import PRIVATE
from harness.state.layout import Layout
from harness.state.state import State
from harness.workspace import _entries, _imports, acceptance, budget, grants, places, skills, subagents, tools
from harness.workspace._reader import WorkspaceReader, parse_all
from harness.workspace.acceptance import AcceptanceRow, WaitingChange
from harness.workspace.budget import WorkspaceSection
from harness.workspace.disk_reader import reader_of
from harness.workspace.grants import Grants
from harness.workspace.skills import Skill
from harness.workspace.subagents import Subagent
from harness.workspace.tools import ToolsFile

WORDS = ("instructions", "knowledge", "skills", "memory")  # of `reads:`
INSTRUCTIONS = (
    "## Instructions of this project\n\nA person wrote them for every agent here: what these fences hold is for you, as far as "
    "the rules of all roles and your role's words leave it open."
)
NESTED = f"**/{places.INSTRUCTIONS}"
OF_FOLDERS = (
    "### Instructions of folders\n\nEach is for the files below its folder, and the nearest one counts most. Read it before "
    "you work there, unless a tool has shown it to you."
)
SKILLS = "## Skills\n\nEach is a way of working, written down. Load one before the work that it describes: `{load}`."
KNOWLEDGE = "## Knowledge of this project"
ENTRY = f"{places.KNOWLEDGE}/{places.ENTRY}"
SMALL_BYTES = 256 * 1024  # maximum size of a skill's file that is kept with a run
OTHERS = "### More, to be read when it helps"
MEMORY = "### MEMORY.md (lessons of this mission, the newest first to stay)"


class CliReading(Record):
    """The paths that a CLI reads by itself in its working folder: `files` such as AGENTS.md, those that it reads `instead`
    if it has none of these, and `skills` folders."""

    files: list[str] = []
    instead: list[str] = []
    skills: list[str] = []


class WorkspaceSnapshot(Record):
    """The workspace of a run's agents. `sections`: of the stable part of the prompt; `memory`: the section of MEMORY.md
    or None; `told`: whether the prompt has AGENTS.md (CLAUDE.md, without one), so that a CLI must not read it too;
    `left_out`: a line for each file that the CLI reads by itself, import that is none, field of .mcp.json and name of a
    skill; `tools` None: no tools.json and no .mcp.json; `faults`: one line for each part that is invalid or not accepted;
    `grants`: parts that require acceptance; `nested`: the AGENTS.md of folders below; `room`: tokens of the budget that
    are left for their texts; `over`: files of a store, by path, over those of the project."""

    user: str
    commit: str
    sections: list[WorkspaceSection]
    memory: WorkspaceSection | None
    told: bool
    left_out: list[str]
    skills: list[Skill]
    subagents: list[Subagent]
    tools: ToolsFile | None
    waiting: list[WaitingChange]
    faults: list[str] = []
    grants: Grants = Grants()
    nested: list[str] = []
    room: int = 0
    over: Mapping[str, bytes] = {}


def gather(
    layout: Layout,
    commit: str,
    settings: Config,
    reads: Collection[str],
    own: Sequence[CliReading] = (),
    folder: str = "",
    known: dict[str, AcceptanceRow] | None = None,
    more: Sequence[WorkspaceSection] = (),
    user: str | None = None,
    load: str = "harness skill NAME",
    over: Mapping[str, bytes] = {},
) -> WorkspaceSnapshot:
    """The snapshot at a commit ("": the disk, without commits) for an agent whose role `reads` these parts. `own`: what each
    agent of the run reads by itself in the checkout `folder`; `known`: the newest lines of the log, if not those on disk;
    `more`: further sections within the same budget; `user`: overrides the configuration's; `load`: how the agent loads a skill;
    `over`: files of a store, by path, that lie over those of the project. Raises BrokenFile for a malformed file that may
    restrict or instruct, regardless of `reads`."""
    table, user = WorkspaceTable(**settings.workspace), config.user_of(settings) if user is None else user
    reader = reader_of(layout, commit, user, table.additional_context, known)
    reader.lay_over(over)
    at = layout.folders.within(folder) if folder else layout.folders.project
    found = WorkspaceSnapshot(
        user=user,
        commit=commit,
        sections=[],
        memory=None,
        told=False,
        left_out=reader.left_out,
        skills=_skills(reader) if table.skills else [],
        subagents=_subagents(layout, reader) if table.subagents else [],
        tools=_tools(reader) if table.tools else None,
        waiting=reader.waiting,
        faults=reader.faults,
        over=over,
    )
    found.left_out += found.tools.unused if found.tools else []
    _without_grants(layout, reader, found)
    wanted = {word for word in WORDS if word in reads and getattr(table, word)}
    made = _instructions(reader, own, at, found) if "instructions" in wanted else []
    made += _skill_index(own, at, found, load) if "skills" in wanted else []
    made += _knowledge(reader) if "knowledge" in wanted else []
    made += [*more, *(_memory(layout) if "memory" in wanted else [])]
    fitted = budget.fit([one for one in made if one.text.strip()], table.max_tokens)
    found.sections = [one for one in fitted if one.kind != "memory" and one.text]
    first = places.INSTRUCTIONS if places.INSTRUCTIONS in reader.paths else places.IMPORTING
    found.told = any(one.source == first for one in found.sections)
    found.room = max(0, table.max_tokens - sum(one.tokens for one in fitted))
    found.memory = next((one for one in fitted if one.kind == "memory" and one.text), None)
    return found


def _without_grants(layout: Layout, reader: WorkspaceReader, found: WorkspaceSnapshot) -> None:
    """Remove parts of the repository that no person has accepted."""
    inside = [one for one in found.skills if one.layer in (places.PROJECT, places.OF_USER)]
    brought = [one for one in inside if len(reader.beside(one.folder)) > 1]
    servers = found.tools.servers if found.tools else []
    found.grants = grants.of_workspace(reader, servers, brought)
    if found.grants.is_accepted(layout):
        return
    found.faults.insert(0, found.grants.waits())
    found.skills = [one for one in found.skills if one not in brought]
    if found.tools:
        found.tools = found.tools.replace(servers=[])


def _instructions(
    reader: WorkspaceReader, own: Sequence[CliReading], at: str, found: WorkspaceSnapshot
) -> list[WorkspaceSection]:
    """AGENTS.md, the files that config.toml adds, CLAUDE.md with its imports, and the names of nested AGENTS.md; without
    those that every agent reads in the effective version by itself."""
    texts = {name: reader.text(name) or "" for name in (places.INSTRUCTIONS, *reader.more)}
    imported = _imports.read(reader, found.left_out)
    texts |= {name: text for name, text in imported.items() if text not in texts.values()}
    for name, group in {places.INSTRUCTIONS: {places.INSTRUCTIONS}, places.IMPORTING: {*imported}}.items():
        alone = bool(own) and all(_reads(one, name, at, group) for one in own) and not any(map(reader.waits, group))
        if alone and name in reader.paths:
            found.left_out.append(f"{name}: the agent reads it by itself")
            texts = {path: text for path, text in texts.items() if path not in group or path in reader.more}
    found.nested = [name for name in places.nested(reader.paths) if name not in imported]
    made = [
        WorkspaceSection(kind="instructions", title=f"### {name}", text=ended(text), source=name, layer=places.PROJECT)
        for name, text in [*texts.items(), (NESTED, "".join(f"- {name}\n" for name in found.nested))]
        if text.strip()
    ]
    if found.nested:
        made[-1] = made[-1].replace(title=OF_FOLDERS, keep=budget.ROWS)
    return [one.replace(title=f"{INSTRUCTIONS}\n\n{one.title}") for one in made[:1]] + made[1:]


def imported(layout: Layout, commit: str) -> list[str]:
    """The files that CLAUDE.md imports in its effective version at a commit."""
    return [*_imports.read(reader_of(layout, commit, "", (), None), [])]


def unused(layout: Layout, commit: str, settings: Config) -> dict[str, list[str]]:
    """{reason: paths} of everything in the places of a workspace that no agent gets, and that no line of a snapshot names."""
    table = WorkspaceTable(**settings.workspace)
    reader = reader_of(layout, commit, config.user_of(settings), table.additional_context, None)
    found, imported = gather(layout, commit, settings, WORDS), _imports.read(reader, [])
    used = {one.source for one in found.sections} | {one for one in imported if imported[one] or len(imported) > 1}
    used.update(found.nested, (one.path for one in found.subagents), (one.path for one in found.skills))
    used.update(f"{one.folder}/{name}" for one in found.skills for name in one.files)
    used.update({places.TOOLS, places.SERVERS, f"{reader.of_user}/{places.TOOLS}"}.intersection(reader.paths))
    if places.KNOWLEDGE in used:
        used.update({one for one in reader.paths if one.startswith(f"{places.KNOWLEDGE}/")} - {ENTRY})
    named = {line.partition(":")[0].partition(", line ")[0] for line in [*found.left_out, *found.faults]}
    named.update(one.path[len(reader.prefix) :] for one in found.waiting)
    return _entries.unused(reader, used, named, [word for word, is_on in table.asdict().items() if is_on is False])


def nested_text(layout: Layout, given: WorkspaceSnapshot, name: str, room: int) -> str:
    """The effective text of a nested AGENTS.md of the snapshot, cut to what is left of the budget; raises BrokenFile."""
    reader = reader_of(layout, given.commit, given.user, (), None)
    reader.lay_over(given.over)
    text = reader.text(name) or ""
    whole = WorkspaceSection(kind="instructions", title="", text=ended(text), source=name, layer=places.PROJECT)
    return budget.fit([whole], max(room, budget.SMALLEST))[0].text


def _reads(own: CliReading, name: str, at: str, group: Collection[str]) -> bool:
    """Whether a CLI reads this file, with all of its `group`: as one of its files, or instead of them if it imports
    nothing, or because one of them links to or imports it."""
    there = any(os.path.lexists(os.path.join(at, one)) for one in own.files)
    instead = name in own.instead and not there and len(group) == 1
    return name in own.files or instead or any(_leads_there(at, one, name) for one in own.files)


def _leads_there(at: str, own: str, name: str) -> bool:
    path = os.path.join(at, own)
    if os.path.realpath(path) == os.path.realpath(os.path.join(at, name)):
        return True
    if name != places.INSTRUCTIONS or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        lines = file.read(64 * 1024).split(b"\n")
    return any(line.strip() in (b"@AGENTS.md", b"@./AGENTS.md") for line in lines)


def _skill_index(own: Sequence[CliReading], at: str, found: WorkspaceSnapshot, load: str) -> list[WorkspaceSection]:
    def alone(name: str) -> bool:
        return bool(own) and all(
            any(os.path.lexists(os.path.join(at, folder, name, places.SKILL)) for folder in one.skills) for one in own
        )

    told = [one for one in found.skills if not alone(one.name)]
    found.left_out += [f"the skill {one.name}: the agent finds it by itself" for one in found.skills if one not in told]
    text, layers = skills.index(told), dict.fromkeys(one.layer for one in told)
    rest = f"`{load.removesuffix(' NAME')}` lists them all"
    title, where = SKILLS.format(load=load), ", ".join(layers)
    return [
        WorkspaceSection(
            kind="skills", title=title, text=text, source=places.SKILLS, layer=where, keep=budget.ROWS, rest=rest
        )
    ]


def _knowledge(reader: WorkspaceReader) -> list[WorkspaceSection]:
    """KNOWLEDGE.md, and the names of the files next to it; [] without KNOWLEDGE.md."""
    text = reader.text(ENTRY)
    if text is None:
        return []
    rest = [path for path in reader.paths if path.startswith(f"{places.KNOWLEDGE}/") and path != ENTRY]
    same = WorkspaceSection(
        kind="knowledge", layer=places.PROJECT, title=f"### {ENTRY}", text=ended(text), source=ENTRY
    )
    found = [same] if text.strip() else []
    rows = "".join(f"- {path}\n" for path in rest)
    more = f"ls -R {places.KNOWLEDGE}"
    others = same.replace(title=OTHERS, text=rows, source=places.KNOWLEDGE, keep=budget.ROWS, rest=more)
    found += [others] if rest else []
    return [one.replace(title=f"{KNOWLEDGE}\n\n{one.title}") for one in found[:1]] + found[1:]


def _memory(layout: Layout) -> list[WorkspaceSection]:
    text = State(layout).text(names.MEMORY) or ""
    path = layout.shown(names.MEMORY)
    rest = f"all of it is in {layout.path(names.MEMORY)}"
    return [
        WorkspaceSection(
            kind="memory", title=MEMORY, text=ended(text), source=path, layer="mission", keep=budget.NEWEST, rest=rest
        )
    ]


def _skills(reader: WorkspaceReader) -> list[Skill]:
    """The skills sorted by name; those of a higher layer replace lower ones."""
    texts = reader.skills()
    parsed, faults = parse_all(skills.parse, texts)
    reader.faults += faults
    reader.left_out += [one["misnamed"] for one in parsed.values() if one["misnamed"]]
    found = {
        one.name: Skill(
            name=one.name,
            description=parsed[one.path]["description"],
            layer=one.layer,
            path=one.path,
            folder=one.folder,
            files=one.beside,
            text=one.text,
        )
        for one in texts
        if one.path in parsed
    }
    return [found[name] for name in sorted(found)]


def _subagents(layout: Layout, reader: WorkspaceReader) -> list[Subagent]:
    texts = reader.subagents()
    parsed, faults = parse_all(subagents.parse, texts)
    reader.faults += faults
    made = {
        one.name: Subagent(**parsed[one.path], layer=one.layer, path=one.path) for one in texts if one.path in parsed
    }
    return [made[name] for name in sorted(made)]


def _tools(reader: WorkspaceReader) -> ToolsFile | None:
    """tools.json of each layer, then the servers of .mcp.json whose names these do not have."""
    found = [tools.parse(one.text, one.path) for one in reader.tools()]
    made = tools.merged(found)
    try:
        text = reader.text(places.SERVERS)
        more = tools.parse(text, places.SERVERS, foreign=True) if text is not None else ToolsFile()
    except BrokenFile as broken:
        text, more = None, ToolsFile(faults=[broken.brief])
    known = [*(one.name for one in made.servers), *made.disabled]
    made.disabled += [name for name in more.disabled if name not in known]
    made.servers, made.unused = [*made.servers, *(one for one in more.servers if one.name not in known)], more.unused
    reader.faults += [*made.faults, *more.faults]
    return made if found or text is not None else None


def keep(layout: Layout, run: str, given: WorkspaceSnapshot) -> None:
    """Store the snapshot outside the prompt, for the commands and tools of the run's agent."""
    recorded = []
    for one in given.skills:
        found = {path: data for path, data in _beside(layout, given, one).items() if len(data) <= SMALL_BYTES}
        kept = {path: objects.put(layout, data) for path, data in found.items()}
        recorded.append(one.replace(object=objects.put(layout, one.text.encode()), text="", kept=kept))
    _write(layout, run, given.replace(skills=recorded))


def _write(layout: Layout, run: str, given: WorkspaceSnapshot) -> None:
    row = {
        **{name: getattr(given, name) for name in ("user", "commit", "told", "left_out", "nested", "room")},
        **{name: schema.plain(getattr(given, name)) for name in ("skills", "subagents", "tools", "waiting")},
    }
    State(layout).put(names.of_run(run, names.WORKSPACE), encoding.dump_json(row), mode=PRIVATE)


def kept(layout: Layout, run: str) -> WorkspaceSnapshot | None:
    """The stored snapshot of a run; None without a workspace."""
    row = State(layout).json(names.of_run(run, names.WORKSPACE))
    if not isinstance(row, dict):
        return None
    return WorkspaceSnapshot(
        **{name: row[name] for name in ("user", "commit", "told", "left_out", "nested", "room") if name in row},
        skills=[Skill(**one) for one in row["skills"]],
        subagents=[Subagent(**one) for one in row["subagents"]],
        waiting=[WaitingChange(**one) for one in row["waiting"]],
        tools=tools.of_json(row["tools"]) if row["tools"] else None,
        sections=[],
        memory=None,
    )


def copied(where: Layout, run: str, target: Layout) -> WorkspaceSnapshot | None:
    """Copy a run's snapshot, with the objects of its skills, for a run of the same id elsewhere."""
    found = kept(where, run)
    if found is not None:
        for name in (name for one in found.skills for name in (one.object, *one.kept.values())):
            objects.put(target, objects.get(where, name))
        _write(target, run, found)
    return found


def body(layout: Layout, given: WorkspaceSnapshot, name: str) -> str:
    """The body of a skill in the snapshot, for `harness skill` or as the result of a tool. Raises UsageFault."""
    skill = skills.find(given.skills, name)
    text = skill.text or encoding.decode(objects.get(layout, skill.object), skill.path)
    return skills.shown(skill, text)


def resource(layout: Layout, given: WorkspaceSnapshot, name: str, path: str) -> str:
    """The effective text of another file of a skill; raises UsageFault if it is missing or large."""
    skill = skills.find(given.skills, name)
    if path not in skill.files:
        there = ", ".join(skill.files[:20]) or "none"
        raise UsageFault(f"The skill {name} has no file '{path}'. It has: {there}.")
    if path in skill.kept:
        return encoding.decode(objects.get(layout, skill.kept[path]), f"{skill.folder}/{path}")
    data = None if skill.object else _beside(layout, given, skill).get(path)
    if data is None:
        raise UsageFault(f"{path} is large. Read it where it is: {skill.folder}/{path}")
    return encoding.decode(data, f"{skill.folder}/{path}")


def _beside(layout: Layout, given: WorkspaceSnapshot, skill: Skill) -> dict[str, bytes]:
    """{path: effective bytes} of the other files of a skill."""
    over = {path: data for path in skill.files if (data := given.over.get(f"{skill.folder}/{path}")) is not None}
    if len(over) == len(skill.files):
        return over
    if skill.layer not in (places.PROJECT, places.OF_USER) or not given.commit:
        there = os.path.join(layout.folders.project, skill.folder)
        found = {path: data for path in skill.files if (data := files.read(os.path.join(there, path))) is not None}
        return found | over
    at = f"{layout.folders.prefix}{skill.folder}/"
    accepted = acceptance.at(layout, given.commit, [at.rstrip("/")])
    small = [path for path in skill.files if (one := accepted.files.get(at + path)) and one.size <= SMALL_BYTES]
    return {path[len(at) :]: data for path, data in accepted.read(at + path for path in small).items()} | over
