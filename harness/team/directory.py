"""Who and what a team has: agents, spaces, users and threads by name, and who may use which space."""

from __future__ import annotations

from harness.base.errors import UsageFault
from harness.stores.database import Row
from harness.team import _audit
from harness.team.database import Attribution, Transaction, check_name, new_id

KINDS = ("agent", "space", "user", "thread")
MODES = ("read", "write")
THREAD = """select thread.id, thread.name, thread.revision, thread.gate, agent.id as agent_id, agent.name as agent,
space.id as space_id, space.name as space, space.status as space_status, person.id as user_id, person.name as user_name
from team_threads as thread
join team_agents as agent on agent.tenant = $1 and agent.id = thread.agent_id
join team_spaces as space on space.tenant = $1 and space.id = thread.space_id
join team_users as person on person.tenant = $1 and person.id = thread.user_id
where thread.tenant = $1"""
GRANTS = """select space.name as space, held.kind, coalesce(person.name, agent.name) as name, held.mode from team_grants as held
join team_spaces as space on space.tenant = $1 and space.id = held.space_id
left join team_users as person on person.tenant = $1 and person.id = held.holder_id
left join team_agents as agent on agent.tenant = $1 and agent.id = held.holder_id where held.tenant = $1"""
ALLOW = "insert into team_grants (tenant, space_id, kind, holder_id, mode) values ($1, $2, $3, $4, $5)"
HELD = "from team_grants where tenant = $1 and space_id = $2 and kind = $3 and holder_id = $4"


def find(tx: Transaction, kind: str, name: str) -> Row:
    """The agent, space, user or thread of this name or id. Raises UsageFault for an unknown one."""
    if found := tx.ask(f"select * from team_{kind}s where tenant = $1 and $2 in (id, name)", name):
        return found[0]
    raise UsageFault(f"There is no {kind} {name!r} in this tenant.")


def tenant_name(tx: Transaction) -> str:
    """The name of the tenant, which is its folder."""
    return str(tx.ask("select name from team_tenants where id = $1")[0]["name"])


def thread(tx: Transaction, name: str) -> Row:
    """A thread by name or id, with what it is bound to: `agent`, `space`, `space_status`, `user_name`, each with its id.
    Raises UsageFault for an unknown one."""
    return tx.ask(f"{THREAD} and thread.id = $2", find(tx, "thread", name)["id"])[0]


def active_thread(tx: Transaction, name: str) -> Row:
    """As `thread`. Raises UsageFault for one in an archived space, too."""
    row = thread(tx, name)
    active({"name": row["space"], "status": row["space_status"]})
    return row


def threads(tx: Transaction) -> list[Row]:
    """All threads, as `thread`."""
    return sorted(tx.ask(THREAD), key=lambda row: str(row["name"]))


def members(tx: Transaction) -> dict[str, list[Row]]:
    """Agents, spaces, users, and the grants of spaces to the others."""
    found = {f"{kind}s": tx.ask(f"select * from team_{kind}s where tenant = $1") for kind in KINDS[:3]}
    return {
        kind: sorted(rows, key=lambda row: str(row["name"]))
        for kind, rows in {**found, "grants": tx.ask(GRANTS)}.items()
    }


def add(tx: Transaction, kind: str, name: str, by: Attribution, bound: dict[str, str] | None = None) -> Row:
    """A new one of KINDS; a thread is `bound` to an `agent`, an active `space` and a `user` by their names or ids. Raises
    UsageFault for a name that is none or taken, and for what is unknown or archived."""

    def act() -> Row:
        check_name(kind, name)
        places = {
            f"{one}_id": find(tx, one, (bound or {}).get(one, ""))
            for one in ("agent", "space", "user")
            if kind == "thread"
        }
        if places:
            active(places["space_id"])
        row = {"id": new_id(), "name": name, **{column: found["id"] for column, found in places.items()}}
        values = ", ".join(f"${number}" for number in range(2, len(row) + 2))
        insert = f"insert into team_{kind}s (tenant, {', '.join(row)}) values ($1, {values})"
        if not tx.ask(f"{insert} on conflict (tenant, name) do nothing returning id", *row.values()):
            raise UsageFault(f"There is a {kind} '{name}' already.")
        return {"kind": kind, **row}

    return _audit.once(tx, f"add {kind}", {"name": name, **(bound or {})}, by, act)


def active(space: Row) -> Row:
    """The space itself. Raises UsageFault for an archived one."""
    if space["status"] != "active":
        raise UsageFault(f"The space '{space['name']}' is archived.")
    return space


def archive(tx: Transaction, space: str, by: Attribution, *, undo: bool = False) -> Row:
    """Archive a space, or make it active again: nobody writes in an archived one. Raises UsageFault."""
    status = "active" if undo else "archived"

    def act() -> Row:
        row = {**find(tx, "space", space), "status": status}
        tx.ask("update team_spaces set status = $3 where tenant = $1 and id = $2", row["id"], status)
        return row

    return _audit.once(tx, "archive", {"space": space, "status": status}, by, act)


def holder(tx: Transaction, word: str) -> tuple[str, Row]:
    """(`user` or `agent`, the row) of a name or id; `agent/NAME` for one whose name a user has, too. Raises UsageFault."""
    kind, _, name = word.rpartition("/")
    for one in (kind,) if kind in ("user", "agent") else ("user", "agent"):
        if found := tx.ask(f"select id, name from team_{one}s where tenant = $1 and $2 in (id, name)", name):
            return one, found[0]
    raise UsageFault(f"There is no user or agent {word!r} in this tenant.")


def grant(tx: Transaction, who: str, space: str, mode: str, by: Attribution) -> Row:
    """Let a user or an agent `read` or `write` a space, or with "" neither. Raises UsageFault."""
    if mode not in ("", *MODES):
        raise UsageFault(f"'{mode}' is no mode of a grant: {' or '.join(MODES)}.")

    def act() -> Row:
        (kind, row), at = holder(tx, who), find(tx, "space", space)
        tx.ask(f"delete {HELD}", at["id"], kind, row["id"])
        if mode:
            tx.ask(ALLOW, at["id"], kind, row["id"], mode)
        return {"kind": kind, "name": row["name"], "space": at["name"], "mode": mode}

    return _audit.once(tx, "grant" if mode else "revoke", {"who": who, "space": space, "mode": mode}, by, act)


def granted(tx: Transaction, space_id: str, kind: str, holder_id: str) -> str:
    """What a user or agent may do in a space now: `write`, `read` or ""."""
    return "".join(row["mode"] for row in tx.ask(f"select mode {HELD}", space_id, kind, holder_id))


def access(tx: Transaction, thread_name: str, owner_kind: str, owner_id: str) -> str:
    """What a thread may do now with the files of an agent, a space, a user or a thread, by id: `write`, `read` or "".

    Its own agent, user and itself are for it to write, and agents that it delegates to for it to read. A space is what both
    its user and its agent may, archived at most to read; other users and threads are not for it. Raises UsageFault for an
    unknown thread."""
    row = thread(tx, thread_name)
    if owner_kind != "space":
        is_own = owner_id == row["id" if owner_kind == "thread" else f"{owner_kind}_id"]
        known = is_own or tx.ask("select id from team_agents where tenant = $1 and id = $2", owner_id)
        return "write" if is_own else "read" if known and owner_kind == "agent" else ""
    found = tx.ask("select status from team_spaces where tenant = $1 and id = $2", owner_id)
    modes = {granted(tx, owner_id, kind, row[f"{kind}_id"]) for kind in ("user", "agent")}
    if not found or "" in modes:
        return ""
    return "write" if modes == {"write"} and found[0]["status"] == "active" else "read"
