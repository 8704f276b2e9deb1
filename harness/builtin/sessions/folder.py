"""The agent that a person talks with in a folder: as its config.toml says, with the folder's own files and a shell."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from harness.agents import builtin, registry
from harness.agents.base import LOOP
from harness.base.errors import Unavailable, UsageFault
from harness.builtin.hooks import Hooks
from harness.builtin.loop.exchange import ModelFault, Request
from harness.builtin.loop.loop import Limits
from harness.builtin.sessions import _copy, _placement, _places, state
from harness.builtin.sessions._calls import AgentConfig, Ask
from harness.builtin.sessions._copy import DIFFERENT as DIFFERENT
from harness.builtin.sessions._copy import FAILED as FAILED
from harness.builtin.sessions._copy import CopiedValue
from harness.builtin.sessions._placement import LOCAL
from harness.builtin.sessions._system_text import ROLE, SystemText, SystemTextSource
from harness.builtin.sessions.agent import HarnessAgent
from harness.builtin.sessions.keys import OF_USER, USER, SessionKeys, memory_of, session_keys
from harness.builtin.tools.tool import ALWAYS, NO, YES, Tool
from harness.mission import config
from harness.process import temporary
from harness.run.workspace_inputs import commit_of, committed_bytes
from harness.state import files, names
from harness.state.layout import Layout
from harness.stores.disk import DiskStore
from harness.stores.store import Store
from harness.stores.urls import open_store
from harness.workspace import grants
from harness.workspace.places import TOOLS
from harness.workspace.rules import ToolRules

# A person is asked before these tools run, unless a rule of the session permits them.
ASKED = ["write_file", "edit_file", "execute"]
ANSWERS = {"y": YES, "yes": YES, "a": ALWAYS, "always": ALWAYS}
REFUSED = NO
SCRATCH = "ask"  # the tag of the folders of conversations that are not saved


def agent(
    layout: Layout,
    name: str,
    model: str,
    ask: Ask | None,
    asked: Sequence[Tool] = (),
    hooks: Hooks = Hooks(),  # noqa: B008 - it is frozen
    *,
    scratch: str = "",
) -> HarnessAgent:
    """The agent. `name`: of the role whose words it has, "" for ours; `model` "": that of config.toml; `asked`: more tools,
    about each call of which a person is asked; `scratch`: the folder of a conversation that is not saved, "" for one that is.
    Raises BrokenFile for a table that is not valid, UsageFault for a `model` that is none."""
    if model and not builtin.is_model(model):
        raise UsageFault(f"--model: {builtin.unknown(model)}")
    settings = config.load(layout)
    found = registry.settings_of(layout, settings, LOOP, name or ROLE)
    found = found.replace(model=model or found.model)
    builtin.check(found)
    table, place = found.table, found.table.get("placement", LOCAL)
    given = DiskStore(os.path.join(scratch, names.SESSIONS)) if scratch else _store(table)
    kept = given or DiskStore(_places.root(layout))
    here = kept if isinstance(kept, DiskStore) and place == LOCAL else None
    return HarnessAgent(
        name or ROLE,
        found.model,
        workspace=layout.folders.project,
        store=here or given,
        filesystem=(lambda user, session: _places.of_folder(here, layout, session_keys(user, session)))
        if here
        else None,
        ask=ask,
        tools=asked,
        config=AgentConfig(
            base_url=table.get("base_url", ""),
            api_key_env=table.get("api_key_env", ""),
            temperature=table.get("temperature"),
            max_output_tokens=table.get("max_output_tokens"),
            request_seconds=table.get("request_seconds", 600.0),
            curate=table.get("curate", True),
            plans=table.get("plans", "plans"),
            placement=place,
            scope=table.get("scope", OF_USER),
            shared=table.get("shared", []),
            sandbox_limits=table.get("sandbox_limits", {}),
            hooks=hooks,
            rules=ToolRules(ask=[*ASKED, *(one.name for one in asked)]),
        ),
    )


@contextmanager
def scratch() -> Iterator[str]:
    """A folder for a conversation that is not saved, removed at the end."""
    temporary.remove_abandoned(SCRATCH)
    made = temporary.create(SCRATCH, temporary.of_process(SCRATCH))
    try:
        yield made
    finally:
        temporary.remove(made)


def attempt(layout: Layout) -> str:
    """Send one tiny request to the configured model; "" if it answers, else why not."""
    made = agent(layout, "", "", None)

    async def ask() -> str:
        model = made.client()
        hello = {"role": "user", "text": "Answer with: ok", "images": []}
        try:
            request = Request(system="", tools=[], messages=[hello], parameters=model.parameters)
            await model.ask(request, lambda sent: None, lambda piece: None)
        except ModelFault as fault:
            return fault.reason
        finally:
            await model.close()
        return ""

    try:
        return asyncio.run(ask())
    except Unavailable as fault:
        return str(fault)


def offer(layout: Layout, named: str, accepts: Callable[[Sequence[str]], bool]) -> None:
    """Ask a person to accept what the folder brings, where they have not accepted it: first its `.harness`, of which nothing is
    read before, then the rest."""
    for look in (grants.of_state, lambda layout: _source(layout, named).given.grants):
        found = look(layout)
        if not found.is_accepted(layout):
            if not accepts(found.rows):
                return
            found.accept(layout)


def _source(layout: Layout, named: str) -> SystemText:
    who = user(layout, named)
    return SystemTextSource(layout, ROLE, store(layout)).text_for(who, memory_of(who))


def check(layout: Layout) -> None:
    """Raises Unavailable where the repository brings a `.harness` that no person has accepted."""
    grants.check_state(layout)


def user(layout: Layout, named: str) -> str:
    """Who talks: as it was said, else as config.toml or HARNESS_USER has it."""
    return named or config.user_of(config.load(layout)) or USER


def not_committed(layout: Layout) -> str:
    """A line for a person whose tools.json is not what their last commit has: its rules do not hold yet; "" for none."""
    if not (commit := commit_of(layout)):
        return ""
    if committed_bytes(layout, commit, TOOLS) == files.read(os.path.join(layout.folders.project, TOOLS)):
        return ""
    return f"{TOOLS} has uncommitted changes, which do not apply. Commit it to apply them."


def limits(layout: Layout, cost: float | None, tokens: int | None, steps: int | None) -> Limits:
    """The limits of a call."""
    settings = config.load(layout)
    most = steps or settings.agents.get(LOOP, {}).get("max_steps", Limits().max_steps)
    return Limits(max_steps=most, cost_usd=cost, tokens=tokens, prices=settings.prices)


def answered(text: str) -> str:
    """The meaning of a person's answer to a question."""
    return ANSWERS.get(text.strip().lower(), REFUSED)


def store(layout: Layout) -> Store:
    """The sessions of a workspace, where its config.toml places them."""
    table = registry.settings_of(layout, config.load(layout), LOOP, ROLE).table
    return _placement.store_of(_placement.parse(table.get("placement", LOCAL)), layout, _store(table))


def named(layout: Layout, session: str, who: str) -> tuple[Store, SessionKeys]:
    """The store of a workspace's sessions, and the keys of one of them; `who` "": the user as for `ask`."""
    return store(layout), session_keys(user(layout, who), session)


def copied(source: str, target: str, *, dry_run: bool) -> Iterator[CopiedValue]:
    """Copy all that a store has to another; each is a URL, or the folder of a project, whose sessions are meant. A folder's
    AGENTS.md, tools.json, knowledge, skills and subagents become files of the workspace in the target."""
    from_, to = (_named(one) for one in (source, target))
    yield from _copy.copied(from_, to, dry_run=dry_run)
    if os.path.isdir(source):
        yield from _copy.static(Layout(source), to, dry_run=dry_run)


def _named(url: str) -> Store:
    if not os.path.isdir(url):
        return open_store(url)
    check(Layout(url))
    return store(Layout(url))


def _store(table: Mapping[str, Any]) -> Store | None:
    named = str(table.get("store", ""))
    return open_store(named) if named else None


def agent_of(layout: Layout, user: str, session: str) -> str:
    """The agent of a session; "" if there is none, or if it cannot be read: loading it reports why."""
    return state.agent_of(store(layout), session_keys(user, session))
