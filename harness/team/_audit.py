"""The audit log of a team: one row for each verb, written in the same transaction as the change. A repeated key is not
carried out again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from harness.base import clock
from harness.base.errors import UsageFault
from harness.stores.database import Row
from harness.team.database import Attribution, Transaction, new_id

MAX_CHARS = 4000  # of a title or a reason


def run_once(tx: Transaction, verb: str, request: Mapping[str, object], by: Attribution, act: Callable[[], Row]) -> Row:
    """Carry out `act` and log it; returns its result. If the key is known, nothing is carried out, and the result is that of
    the first call, with `repeated` set. Raises UsageFault for a key that was used for another request."""
    text = json.dumps(request, ensure_ascii=False, sort_keys=True)
    key = checked_text("key", by.key) if by.key else new_id()
    who, why = checked_text("name of the caller", by.who), checked_text("reason", by.why) if by.why else ""
    inserted = tx.execute(
        "insert into team_audit (tenant, key, verb, request, result, who, why, at) values ($1, $2, $3, $4, '', $5, $6, $7)"
        " on conflict (tenant, key) do nothing returning key",
        *(key, verb, text, who, why, clock.stamp(clock.now())),
    )
    if not inserted:
        known = tx.execute("select verb, request, result from team_audit where tenant = $1 and key = $2", key)[0]
        if (known["verb"], known["request"]) != (verb, text):
            raise UsageFault(f"The key '{key}' was used for: {known['verb']} {known['request']}. Choose another one.")
        return {**json.loads(known["result"]), "repeated": True}
    result = act()
    stored = json.dumps(result, ensure_ascii=False)
    tx.execute("update team_audit set result = $3 where tenant = $1 and key = $2", key, stored)
    return {**result, "repeated": False}


def checked_text(what: str, text: str) -> str:
    """A person's text on one line. Raises UsageFault if it is empty, too long, or has unprintable characters."""
    line = " ".join(text.split())
    if not line or len(line) > MAX_CHARS or not line.isprintable():
        raise UsageFault(f"The {what} must be a text of at most {MAX_CHARS} printable characters.")
    return line
