"""Requests that were made by older rules are made again as they were, and their sessions go on by the newest."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from harness.builtin.sessions import turn_replay
from harness.builtin.sessions.keys import session_keys
from harness.state.layout import Layout
from harness.workspace import grants
from tests.agents.modelserver import Reply, serving
from tests.agents.strict import strict
from tests.builtin.sessions.talking import log_of, said, store
from tests.builtin.talking import MODELS, address, bodies

ARCHIVE = Path(__file__).parent / "s2/sessions.tar.gz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the golden sessions."""
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(tmp_path, filter="data")
    grants.of_state(layout := Layout(str(tmp_path))).accept(layout)
    return tmp_path


@pytest.mark.parametrize("session", ["chat", "messages"])
def test_a_request_by_older_rules_is_made_again_byte_for_byte(folder: Path, session: str) -> None:
    """With its key for the cache, and with the text of white space that the vendor refused."""
    numbers = log_of(folder, session).turns.turns
    assert [*numbers] == [1, 2]
    for number in numbers:
        seen, again = turn_replay.turn(store(folder), session_keys("alice", session), number)
        assert again is not None and (again.equal or again.by != seen.by)  # another library may make other bytes


def test_a_session_that_its_vendor_refuses_goes_on(folder: Path) -> None:
    """The person says something more; the text of white space is left out of the request, and stays in the record."""
    with serving(lambda _: Reply("I have.")) as server:
        server.trouble = strict
        given = {"model": MODELS["messages"], "base_url": address(server, "messages")}
        (reply,) = said(folder, server, "and now?", session="messages", **given)
        sent = bodies(server)[-1]["messages"]
    assert (reply.outcome, reply.text) == ("ok", "I have.")
    assert [block["type"] for one in sent if one["role"] == "assistant" for block in one["content"]] == ["tool_use"]
    assert log_of(folder, "messages").turns.messages()[1]["parts"][0]["content"] == " \n"
