"""Who did what and why."""

from __future__ import annotations

import json

import pytest

from harness.base.errors import UsageFault
from harness.team import directory
from harness.team.database import Attribution, Team


def test_a_verb_with_a_key_happens_once_and_says_so(team: Team) -> None:
    """The second call gets the first one's result; the key is for nothing else, and each tenant has its own."""
    by = Attribution(who="ops", why="she joins", key="k-1")
    for tenant in ("acme", "globex"):
        with team.transaction(tenant) as tx:
            first = directory.add(tx, "user", "cleo", by)
        with team.transaction(tenant) as tx:
            again = directory.add(tx, "user", "cleo", by)
            assert again == {**first, "repeated": True} and not first["repeated"]
            rows = tx.execute("select verb, request, who, why from team_audit where tenant = $1 and key = 'k-1'")
            assert rows == [
                {"verb": "add user", "request": json.dumps({"name": "cleo"}), "who": "ops", "why": "she joins"}
            ]
    with pytest.raises(UsageFault, match=r"'k-1' was used for: add user"), team.transaction("acme") as tx:
        directory.add(tx, "user", "dora", by)


def test_a_verb_that_fails_leaves_no_row_and_its_key_free(team: Team) -> None:
    """Sent again once it can be done, it is done."""
    by = Attribution(who="ops", key="k-2")
    with pytest.raises(UsageFault), team.transaction("acme") as tx:
        directory.grant(tx, "cleo", "sales", "read", by)
    with team.transaction("acme") as tx:
        directory.add(tx, "user", "cleo", Attribution(who="ops"))
        assert directory.grant(tx, "cleo", "sales", "read", by)["mode"] == "read"


@pytest.mark.parametrize("who", ["", " ", "a\x00b", "a" * 4001])
def test_who_did_it_is_a_text_on_one_line(team: Team, who: str) -> None:
    """Whatever a terminal or a database would take badly is refused."""
    with pytest.raises(UsageFault, match="name of the caller"), team.transaction("acme") as tx:
        directory.add(tx, "user", "cleo", Attribution(who=who))
