"""The first config.toml by `init`: every setting with its default and its meaning, all commented out.

The schema generates it, so no setting is missing. A setting is a line `#key = value`, a remark starts with `# `.
"""

from __future__ import annotations

import json
from typing import Any

from harness.agents import registry
from harness.base.record import Record
from harness.mission import config

HEAD = """# The settings of this mission. All are optional. Remove the # of a line to use it; in a table that is commented out
# also that of its [name]. More on each: docs/contract.md. A change takes effect with the next run.
"""
ROLE = "{role}"  # the mission's name for the role that commits
TABLES: tuple[tuple[str, type[Record], str], ...] = (
    ("", config.TopTable, ""),
    (
        "limits",
        config.LimitsTable,
        "Caps of the mission, over all its starts. At a cap it stops without losing anything.",
    ),
    ("env", config.EnvTable, "Variables for agents, checks, services and setup."),
    ("home", config.HomeTable, "Your home folder; runs see only a list of its paths (docs/threat-model.md)."),
    ("checks", config.ChecksTable, "What the project's checks may write, and what they need."),
    ("proof", config.ProofTable, "What a person must decide before DONE (docs/proof.md)."),
    ("workspace", config.WorkspaceTable, "What agents get besides their task (docs/workspace.md)."),
    ("team", config.TeamTable, "A team with composed workspaces (docs/team.md)."),
    (f"roles.{ROLE}", config.RoleTable, "One role, built-in or custom."),
    ("agents.mine", config.AgentTable, "One agent: a known one by its name, or any program."),
    ("machines", config.MachinesTable, "Other machines on which lanes work (docs/machines.md)."),
    ("machines.build2", config.MachineTable, "One of them: run.sh --on build2."),
    ("prices.some-model", config.PriceTable, "USD per million tokens of a model whose vendor reports no cost."),
)
TAIL = """
# Programs and URLs that receive events ([[on]]), and points at which the mission waits for you ([[checkpoint]]), each any
# number of times (docs/unattended.md):
# [[on]]
# event = "done"
# run = ["notify-send", "the mission is done"]
# [[checkpoint]]
# name = "plan"
# when = "after-plan"
"""
# An empty table changes nothing; its header lets a person add keys below it.
LIVE = ("limits", "env", "home", "checks", "proof", "workspace", "team", "machines")
ABOUT = {
    "agent": "the agent: a name, or a list to try in turn; known are " + ", ".join(registry.KNOWN_CLIS),
    "user": "the user of the runs: files in users/NAME of the project override those for all users",
    "trust": 'permissions of such an agent: "workspace" or "full"; without it none is started',
    "mcp": "true: the MCP servers of your own CLI configuration are on",
    "workplace": '"tree": runs work in separate worktrees',
    "confine": '"auto": programs of a run are confined if the machine can; "required": else nothing starts; "off"',
    "network": 'of confined programs: true, false, or "loopback": only servers of the same run',
    "otel": "the address of an OpenTelemetry collector, which gets each finished run as spans (docs/unattended.md)",
    "carry": "ignored files of the project that are copied into the worktree; none unless set",
    "lanes": "how many features run.sh works on at once",
    "check_seconds": "the longest a check may take",
    "sweep_seconds": "the longest the checks of passed features may take together",
    "curate_after": "how many notes make a curation due",
    "limits.max_runs": "runs",
    "limits.max_hours": "hours of all runs together",
    "limits.stall_after": "features in a row that use up their attempts with nothing proven between, before a person is asked",
    "limits.max_cost_usd": "USD; no cap unless set",
    "limits.max_cost_usd_day": "USD a day (UTC); no cap unless set",
    "limits.max_cost_usd_feature": "USD for all runs of one feature; no cap unless set",
    "limits.max_tokens": "tokens of all kinds; no cap unless set",
    "limits.max_log_mb": "MiB of transcripts that one run may keep",
    "env.pass": "names of variables that all of them get besides the standard ones; none unless set",
    "home.show": "paths below it that runs see besides the list, logins included; none unless set",
    "checks.writes": "tracked files that checks may change; none unless set",
    "checks.needs": "variables of a run that the second sweep, in a plain environment, sets too; none unless set",
    "proof.guards": '"accept": guards alone may pass a feature, as in a pure refactoring; "ask": a person is asked',
    "team.database": "sqlite:///PATH or postgresql://ROLE@HOST/DATABASE; no team unless set",
    "team.files": "the URL of the store of its files, such as s3://BUCKET/PREFIX or /srv/team",
    "team.tenant": "the tenant of this folder",
    "workspace.max_tokens": "tokens of all its parts in a prompt together",
    "workspace.additional_context": "files of the project whose text goes with AGENTS.md; none unless set",
    "workspace.instructions": "false: without AGENTS.md and instructions of other formats",
    "workspace.knowledge": "false: without knowledge/",
    "workspace.skills": "false: without skills",
    "workspace.memory": "false: without MEMORY.md for roles that read it",
    "workspace.subagents": "false: subagents/ is not read",
    "workspace.tools": "false: tools.json and .mcp.json are not read",
    "roles.agent": "the agent of this role",
    "roles.model": "its model, for the first agent of its list; of several, the next one after each failed attempt",
    "roles.minutes": "the longest a run may take",
    "roles.idle_minutes": "the longest it may take without output or activity",
    "agents.path": "the program of a known agent, if it is not on the PATH",
    "agents.args": "arguments to append to its own",
    "agents.env": "variables to add",
    "agents.model": "the model",
    "agents.command": "any program: reads the prompt on standard input and writes its reply to standard output",
    "agents.format": "the format of its output: text, or that of a known agent",
    "agents.writable": "folders that it may write besides its worktree",
    "agents.base_url": "of the built-in agent: the URL of its model, if it is not the vendor's",
    "agents.api_key_env": "of the built-in agent: the variable with the key, if it is not the vendor's",
    "agents.temperature": "of the built-in agent: from 0 to 2; the vendor's own unless set",
    "agents.max_steps": "of the built-in agent: max requests per run",
    "agents.request_seconds": "of the built-in agent: the longest that one request may take",
    "agents.curate": "of the built-in agent: whether a conversation that is compacted gives facts to the user's memory",
    "agents.plans": "of the built-in agent: the folder for the plan of a conversation; none is written if it is empty",
    "agents.placement": "of the built-in agent: where conversations work: local, store:URL, sandbox or sandbox:PREFIX",
    "agents.scope": "of the built-in agent: who shares memory and files: session, user, agent or global",
    "agents.shared": "of the built-in agent: folders of a store that all users write",
    "agents.sandbox_limits": "of the built-in agent: the most memory_mb, cpu_seconds and processes of a sandbox",
    "agents.store": "of the built-in agent: where its sessions are kept, by URL (docs/stores.md)",
    "machines.sweep": 'where the final sweep runs: "home", or "anywhere"',
    "machines.command": "the words before the program; none for this machine",
    "machines.address": "in place of the words: a Dask scheduler",
    "machines.insecure": "whether its address may be off the loopback without TLS",
    "machines.program": "the harness there",
    "machines.lanes": "how many lanes it takes",
    "prices.input": "neither read from nor written to a cache",
    "prices.output": "reasoning included",
    "prices.cache_read": "read from the prompt cache; as input unless set",
    "prices.cache_write": "written to the prompt cache; as input unless set",
}
EXAMPLES: dict[str, Any] = {  # for keys whose default is absent or uninformative
    "agent": registry.KNOWN_CLIS[0],
    "user": "alice",
    "trust": "workspace",
    "carry": [".env"],
    "limits.max_cost_usd": 10.0,
    "limits.max_cost_usd_day": 5.0,
    "limits.max_cost_usd_feature": 2.0,
    "limits.max_tokens": 50_000_000,
    "env.pass": ["DATABASE_PASSWORD"],
    "home.show": [".config/tool"],
    "checks.writes": ["Cargo.lock"],
    "checks.needs": ["CI"],
    "workspace.additional_context": ["docs/STYLE.md"],
    "roles.agent": registry.KNOWN_CLIS[1],
    "roles.model": ["small", "large"],
    "agents.path": "~/bin/mine",
    "agents.args": ["--quiet"],
    "agents.env": {"LANG": "C"},
    "agents.model": "large",
    "agents.command": ["my-agent", "--print"],
    "agents.format": "text",
    "agents.writable": ["~/.mine"],
    "agents.base_url": "http://127.0.0.1:11434/v1",
    "agents.api_key_env": "MY_MODEL_KEY",
    "agents.temperature": 0.2,
    "machines.command": ["ssh", "build2"],
    "machines.address": "dask:tls://build2:8786",
    "prices.input": 1.25,
    "prices.output": 10.0,
    "prices.cache_read": 0.125,
    "prices.cache_write": 1.25,
}


def commented(role: str) -> str:
    """The whole file, with a table for this role; without the `#` of its settings, all of them are set."""
    return (HEAD + "".join(_table(name, shape, about) for name, shape, about in TABLES) + TAIL).replace(ROLE, role)


def _table(name: str, shape: type[Record], about: str) -> str:
    """One table of the file, with the lines of its keys."""
    kind = name.partition(".")[0]
    lines = ["", f"# {about}", f"[{name}]" if name in LIVE else f"#[{name}]"] if name else [""]
    for key in shape.fields:
        full = f"{kind}.{key}" if kind else key
        lines += [f"# {ABOUT[full]}", f"#{key} = {_toml(EXAMPLES.get(full, getattr(shape, key, None)))}"]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def put(text: str, key: str, value: str | float | list[str]) -> str:
    """Set this key (such as `limits.max_runs`) in place of its commented line, else at the start of its table."""
    table, _, name = key.rpartition(".")
    row, lines = f"{name} = {json.dumps(value)}", text.split("\n")
    heads = [number for number, line in enumerate(lines) if line.partition("#")[0].strip() == f"[{table}]"]
    start = heads[0] + 1 if heads else 0
    if table and not heads:
        return "\n".join([text.rstrip("\n"), "", f"[{table}]", row, ""]).lstrip("\n")
    for number, line in enumerate(lines[start:], start):
        if line.startswith(f"#{name} = "):
            return "\n".join([*lines[:number], row, *lines[number + 1 :]])
        if line.lstrip("#").startswith("["):
            break  # the table ends
    return "\n".join([*lines[:start], row, *lines[start:]])
