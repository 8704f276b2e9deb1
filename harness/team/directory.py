"""The directory of a team: its agents, spaces, users and threads by name, and who may use which space."""

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
INSERT_GRANT = "insert into team_grants (tenant, space_id, kind, holder_id, mode) values ($1, $2, $3, $4, $5)"
ONE_GRANT = "from team_grants where tenant = $1 and space_id = $2 and kind = $3 and holder_id = $4"


def find(tx: Transaction, kind: str, name: str) -> Row:
    """The agent, space, user or thread with this name or id. Raises UsageFault if there is none."""
    if found := tx.execute(f"select * from team_{kind}s where tenant = $1 and $2 in (id, name)", name):
        return found[0]
    raise UsageFault(f"There is no {kind} {name!r} in this tenant.")


def tenant_name(tx: Transaction) -> str:
    """The name of the tenant, which is also its folder name."""
    return str(tx.execute("select name from team_tenants where id = $1")[0]["name"])


def thread(tx: Transaction, name: str) -> Row:
    """A thread by name or id, with what it is bound to: `agent`, `space`, `space_status`, `user_name`, each with its id.
    Raises UsageFault for an unknown one."""
    return tx.execute(f"{THREAD} and thread.id = $2", find(tx, "thread", name)["id"])[0]


def active_thread(tx: Transaction, name: str) -> Row:
    """As `thread`. Also raises UsageFault if its space is archived."""
    row = thread(tx, name)
    require_active({"name": row["space"], "status": row["space_status"]})
    return row


def threads(tx: Transaction) -> list[Row]:
    """All threads, as `thread`."""
    return sorted(tx.execute(THREAD), key=lambda row: str(row["name"]))


def members(tx: Transaction) -> dict[str, list[Row]]:
    """Agents, spaces, users, and the grants of spaces to the others."""
    found = {f"{kind}s": tx.execute(f"select * from team_{kind}s where tenant = $1") for kind in KINDS[:3]}
    return {
        kind: sorted(rows, key=lambda row: str(row["name"]))
        for kind, rows in {**found, "grants": tx.execute(GRANTS)}.items()
    }


def add(tx: Transaction, kind: str, name: str, by: Attribution, bound: dict[str, str] | None = None) -> Row:
    """Add one of KINDS; a thread is `bound` to an `agent`, an active `space` and a `user` by their names or ids. Raises
    UsageFault for an invalid or taken name, and for a binding that is unknown or archived."""

    def act() -> Row:
        check_name(kind, name)
        row = {"id": new_id(), "name": name}
        if kind == "thread":
            targets = {one: find(tx, one, (bound or {}).get(one, "")) for one in ("agent", "space", "user")}
            require_active(targets["space"])
            row |= {f"{one}_id": target["id"] for one, target in targets.items()}
        values = ", ".join(f"${number}" for number in range(2, len(row) + 2))
        insert = f"insert into team_{kind}s (tenant, {', '.join(row)}) values ($1, {values})"
        if not tx.execute(f"{insert} on conflict (tenant, name) do nothing returning id", *row.values()):
            raise UsageFault(f"There is a {kind} '{name}' already.")
        return {"kind": kind, **row}

    return _audit.run_once(tx, f"add {kind}", {"name": name, **(bound or {})}, by, act)


def require_active(space: Row) -> None:
    """Raises UsageFault if the space is archived."""
    if space["status"] != "active":
        raise UsageFault(f"The space '{space['name']}' is archived.")


def archive(tx: Transaction, space: str, by: Attribution, *, undo: bool = False) -> Row:
    """Archive a space, which makes it read-only, or make it active again. Raises UsageFault for an unknown space."""
    status = "active" if undo else "archived"

    def act() -> Row:
        row = {**find(tx, "space", space), "status": status}
        tx.execute("update team_spaces set status = $3 where tenant = $1 and id = $2", row["id"], status)
        return row

    return _audit.run_once(tx, "archive", {"space": space, "status": status}, by, act)


def find_holder(tx: Transaction, word: str) -> tuple[str, Row]:
    """(`user` or `agent`, its row) by name or id; `agent/NAME` if a user has the same name. Raises UsageFault."""
    kind, _, name = word.rpartition("/")
    for one in (kind,) if kind in ("user", "agent") else ("user", "agent"):
        if found := tx.execute(f"select id, name from team_{one}s where tenant = $1 and $2 in (id, name)", name):
            return one, found[0]
    raise UsageFault(f"There is no user or agent {word!r} in this tenant.")


def grant(tx: Transaction, who: str, space: str, mode: str, by: Attribution) -> Row:
    """Let a user or an agent `read` or `write` a space; "" takes the grant back. Raises UsageFault."""
    if mode not in ("", *MODES):
        raise UsageFault(f"'{mode}' is not a mode of a grant. Use {' or '.join(MODES)}.")

    def act() -> Row:
        (kind, row), at = find_holder(tx, who), find(tx, "space", space)
        tx.execute(f"delete {ONE_GRANT}", at["id"], kind, row["id"])
        if mode:
            tx.execute(INSERT_GRANT, at["id"], kind, row["id"], mode)
        return {"kind": kind, "name": row["name"], "space": at["name"], "mode": mode}

    return _audit.run_once(tx, "grant" if mode else "revoke", {"who": who, "space": space, "mode": mode}, by, act)


def granted_mode(tx: Transaction, space_id: str, kind: str, holder_id: str) -> str:
    """What a user or agent may do in a space now: `write`, `read` or ""."""
    return "".join(row["mode"] for row in tx.execute(f"select mode {ONE_GRANT}", space_id, kind, holder_id))


def access(tx: Transaction, thread_name: str, owner_kind: str, owner_id: str) -> str:
    """What a thread may do now with the files of an agent, a space, a user or a thread, by id: `write`, `read` or "".

    It may write its own files and those of its agent and its user, and read those of other agents. In a space it may do what
    both its user and its agent may, and at most read an archived one. It has no access to other users and threads. Raises
    UsageFault for an unknown thread."""
    row = thread(tx, thread_name)
    if owner_kind != "space":
        is_own = owner_id == row["id" if owner_kind == "thread" else f"{owner_kind}_id"]
        known = is_own or tx.execute("select id from team_agents where tenant = $1 and id = $2", owner_id)
        return "write" if is_own else "read" if known and owner_kind == "agent" else ""
    found = tx.execute("select status from team_spaces where tenant = $1 and id = $2", owner_id)
    modes = {granted_mode(tx, owner_id, kind, row[f"{kind}_id"]) for kind in ("user", "agent")}
    if not found or "" in modes:
        return ""
    return "write" if modes == {"write"} and found[0]["status"] == "active" else "read"
