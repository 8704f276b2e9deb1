"""The workspace for people (its content for agents, pending changes, their acceptance), and the skills."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from harness.base.errors import NeedsPerson, UsageFault
from harness.base.record import Record
from harness.git import refs
from harness.git import settings as git_settings
from harness.git.checkouts import submodules
from harness.mission import config, mission, roles
from harness.run import workspace_inputs as of_run
from harness.state import names
from harness.state.layout import Layout
from harness.workplace import mission_lock, run_detection, workplace
from harness.workspace import acceptance, grants, places, skills, snapshot
from harness.workspace.acceptance import WaitingChange
from harness.workspace.grants import Grants
from harness.workspace.snapshot import WorkspaceSnapshot

TALKER = "default"  # the user of a conversation by default


def show(layout: Layout, role: str, user: str | None) -> dict[str, Any]:
    """The workspace that an agent of a role would get now, as plain JSON; without a role, that of all roles. Before a mission
    exists, the files on disk count. Raises Unavailable for a `.harness` that nobody accepted."""
    if not run_detection.run_id(layout):
        grants.check_state(layout)
    if there := mission.exists(layout):
        mission.check_format(layout)
    settings = config.load(layout)
    settings = settings if user is None else settings.replace(user=user)
    known = roles.load(layout, role) if role else None
    agents = roles.agents_of(settings, known) if known else []
    reads = known.reads if known else snapshot.WORDS
    head = of_run.commit_of(layout) if there else ""
    found = of_run.look(layout, settings, head, "", reads, agents)
    own, unused = grants.of_state(layout), snapshot.unused(layout, head, settings)
    left = [*found.faults, *found.left_out] if found else []
    rows = [*(found.sections if found else []), *([found.memory] if found and found.memory else [])]
    return {
        "role": role,
        "user": config.user_of(settings),
        "tokens": sum(one.tokens for one in rows),
        "most_tokens": config.WorkspaceTable(**settings.workspace).max_tokens,
        "parts": [
            {
                **{key: getattr(one, key) for key in ("kind", "source", "layer", "tokens", "text")},
                "bytes": len(one.text.encode()),
                "whole_tokens": one.whole_tokens,
            }
            for one in rows
        ],
        "left_out": left if own.is_accepted(layout) else [own.waits(), *left],
        "skills": [_row(one, "name", "layer", "path", "description", "files") for one in found.skills] if found else [],
        "subagents": [_row(one, "id", "layer", "path", "description") for one in found.subagents] if found else [],
        "tools": _tools(found),
        "waiting": [one.asdict() for one in found.waiting] if found else [],
        "not_read": [one for paths in unused.values() for one in paths if one in places.NOT_READ],
        "unused": unused,
    }


def _row(one: Record, *keys: str) -> dict[str, Any]:
    return {key: getattr(one, key) for key in keys}


def _tools(found: WorkspaceSnapshot | None) -> dict[str, Any] | None:
    """The content of tools.json without the text of servers, which may contain secrets."""
    if found is None or found.tools is None:
        return None
    servers = [{"name": one.name, "transport": one.transport} for one in found.tools.servers]
    return {**{name: getattr(found.tools, name) for name in ("allow", "deny", "ask", "disabled")}, "servers": servers}


def brought(layout: Layout) -> list[Grants]:
    """The grants in the workspace that no person has accepted, by the present files; also without a mission."""
    commit, settings = of_run.commit_of(layout), config.load(layout)
    users = dict.fromkeys((config.user_of(settings), TALKER))
    found = [snapshot.gather(layout, commit, settings, (), user=user).grants for user in users]
    return [one for one in found if not one.is_accepted(layout)]


def accept(layout: Layout, paths: Sequence[str]) -> tuple[list[WaitingChange], list[str]]:
    """Accept runs' changes of the workspace: all, or these paths; without paths also the repository's grants, and the reasons
    that hold the person's folder. The digest of a `.harness` as only path accepts that alone. Returns (changes, a line for each
    other item). Raises UsageFault inside a run, BrokenFile, with nothing accepted, if a file would be malformed, and NeedsPerson
    if only the folder cannot follow."""
    run_detection.refuse(layout, "workspace accept")
    own, rows = grants.of_state(layout), list[str]()
    if [*paths] == [own.digest[: grants.SHOWN_DIGITS]]:
        own.accept(layout)
        return [], own.rows
    if paths:
        grants.check_state(layout)
    elif not own.is_accepted(layout):
        own.accept(layout)
        rows = own.rows
    before = brought(layout) if paths else []
    changes = _accept_changes(layout, paths) if paths or os.path.exists(layout.path(names.FORMAT)) else []
    found = [] if before else brought(layout)
    for one in found:
        one.accept(layout)
    rows = list(dict.fromkeys([*rows, *(row for one in found for row in one.rows)]))
    if not paths and os.path.exists(layout.path(names.FORMAT)) and workplace.is_held(layout):
        rows += _let_go(layout)
    return changes, rows


def _let_go(layout: Layout) -> list[str]:
    """Let a person's folder follow the mission's branch again; raises NeedsPerson if it cannot."""
    with mission_lock.take(layout):
        workplace.use(layout)
        said = workplace.let_go(layout)
    if workplace.is_held(layout):
        raise NeedsPerson(said)
    return [said or f"files that your tools execute: {layout.folders.top} follows {mission.load(layout).branch} again"]


def _accept_changes(layout: Layout, paths: Sequence[str]) -> list[WaitingChange]:
    mission.check_format(layout)
    with mission_lock.take(layout):
        head = workplace.position(layout).head
        known = acceptance.newest(layout)
        waiting = acceptance.at(layout, head, [*known], known).waiting
        wanted = [layout.folders.prefix + path for path in paths]
        rows = acceptance.accepting(layout, head, waiting, wanted, _person(layout))
        settings = config.load(layout)
        snapshot.gather(layout, head, settings, snapshot.WORDS, known={**known, **{row.path: row for row in rows}})
        acceptance.append(layout, rows)
        own = {submodules.ACCEPTED + row.blob: row.blob for row in rows if row.path == places.MODULES and row.blob}
        refs.set_all(layout.folders.top, own)
    accepted = {row.path for row in rows}
    return [one for one in waiting if one.path in accepted]


def _person(layout: Layout) -> str:
    return git_settings.person(layout.folders.top).get("GIT_AUTHOR_NAME", "person")


def skill_list(layout: Layout) -> list[skills.Skill]:
    """The skills of this run, or, outside a run, of every next run."""
    found = _given(layout)
    return found.skills if found else []


def skill(layout: Layout, name: str, path: str) -> str:
    """The body of a skill, or another of its files, for an agent or a person."""
    found = _given(layout)
    if found is None:
        raise UsageFault(f"There is no skill here. A skill is a folder with a {places.SKILL}: see docs/workspace.md.")
    return snapshot.resource(layout, found, name, path) if path else snapshot.body(layout, found, name)


def _given(layout: Layout) -> WorkspaceSnapshot | None:
    run_id = run_detection.run_id(layout)
    if run_id:
        return snapshot.kept(layout, run_id)
    mission.check_format(layout)
    return of_run.look(layout, config.load(layout), workplace.position(layout).head, "", (), [])
