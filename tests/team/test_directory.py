"""Who and what a team has."""

from __future__ import annotations

import pytest

from harness.base.errors import UsageFault
from harness.team import directory
from harness.team.database import Team
from tests.team.conftest import ME


def test_a_name_is_taken_once_in_a_tenant_and_its_identity_is_not_the_name(team: Team) -> None:
    """Two tenants have the same names, and other identities; whatever is unknown is refused in one line."""
    ids = set()
    for tenant in ("acme", "globex"):
        with team.transaction(tenant) as tx:
            found = directory.thread(tx, "deal")
            ids |= {found[name] for name in ("id", "agent_id", "space_id", "user_id")}
            assert directory.thread(tx, found["id"]) == found
            assert (found["agent"], found["space"], found["user_name"]) == ("scribe", "sales", "ann")
            assert directory.threads(tx) == [found]
    assert len(ids) == 8
    for kind, name in (("user", "ann"), ("space", "../sales")):
        with pytest.raises(UsageFault, match=r"already|not a valid name"), team.transaction("acme") as tx:
            directory.add(tx, kind, name, ME)
    with pytest.raises(UsageFault, match="no user 'eve'"), team.transaction("acme") as tx:
        directory.add(tx, "thread", "other", ME, {"agent": "scribe", "space": "sales", "user": "eve"})
    with team.transaction("acme") as tx:
        assert [len(rows) for rows in directory.members(tx).values()] == [1, 1, 2, 2]


def test_access_is_what_both_the_user_and_the_agent_may_at_that_moment(team: Team) -> None:
    """Their own files are for the thread to write, a space by the lesser grant, and others' files not at all."""
    with team.transaction("acme") as tx:
        row = directory.thread(tx, "deal")
        bob = directory.find(tx, "user", "bob")["id"]

        def space() -> str:
            return directory.access(tx, "deal", "space", row["space_id"])

        own = [
            directory.access(tx, row["id"], kind, row["id" if kind == "thread" else f"{kind}_id"])
            for kind in ("agent", "user", "thread")
        ]
        assert own == ["write"] * 3 and directory.access(tx, "deal", "user", bob) == ""
        other = directory.add(tx, "agent", "clerk", ME)["id"]
        assert [directory.access(tx, "deal", "agent", one) for one in (other, bob)] == ["read", ""]
        assert space() == "write"
        directory.grant(tx, "ann", "sales", "read", ME)
        assert space() == "read"
        directory.grant(tx, "ann", "sales", "", ME)
        assert space() == ""
        directory.grant(tx, "ann", row["space_id"], "write", ME)
        assert space() == "write"
        directory.archive(tx, "sales", ME)
        assert space() == "read"
        with pytest.raises(UsageFault, match="'sales' is archived"):
            directory.add(tx, "thread", "later", ME, {"agent": "scribe", "space": "sales", "user": "ann"})
        directory.archive(tx, "sales", ME, undo=True)
        assert space() == "write"


def test_a_user_and_an_agent_of_one_name_are_told_apart(team: Team) -> None:
    """By the kind before it."""
    with team.transaction("acme") as tx:
        directory.add(tx, "agent", "ann", ME)
        assert [directory.find_holder(tx, word)[0] for word in ("ann", "agent/ann", "user/ann", "scribe")] == [
            "user",
            "agent",
            "user",
            "agent",
        ]
        with pytest.raises(UsageFault, match="no user or agent 'space/sales'"):
            directory.find_holder(tx, "space/sales")
