"""Requests that were made by rules 2 are made again as they were, and their sessions go on by the newest rules."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from harness.builtin.loop.exchange import RULES
from harness.builtin.sessions import turn_replay
from harness.builtin.sessions.keys import session_keys
from harness.state.layout import Layout
from harness.workspace import grants
from tests.agents.modelserver import Reply, serving
from tests.agents.strict import faults, strict
from tests.builtin.sessions.talking import log_of, said, store
from tests.builtin.talking import MODELS, address

ARCHIVE = Path(__file__).parent / "s4/sessions.tar.gz"
ALL = pytest.mark.parametrize("session", ["chat", "messages"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the golden sessions."""
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(tmp_path, filter="data")
    grants.of_state(layout := Layout(str(tmp_path))).accept(layout)
    return tmp_path


@ALL
def test_a_request_by_rules_2_is_made_again_byte_for_byte(folder: Path, session: str) -> None:
    """With the ids and the order that vendors refuse; each row says by which rules."""
    log = log_of(folder, session).turns
    assert [*log.turns] == [1, 2, 3, 4, 5]
    for number in log.turns:
        assert log.request(number).parameters["rules"] == 2
        seen, again = turn_replay.turn(store(folder), session_keys("alice", session), number)
        assert again is not None and (again.equal or again.by != seen.by)  # another library may make other bytes


@ALL
def test_a_session_that_its_vendor_would_refuse_goes_on(folder: Path, session: str) -> None:
    """Its next request is by the newest rules, and the record keeps what was said."""
    before = log_of(folder, session).turns.messages()
    with serving(lambda _: Reply("I have.")) as server:
        server.trouble = strict
        given = {"model": MODELS[session], "base_url": address(server, session)}
        (reply,) = said(folder, server, "and then?", session=session, **given)
        body = json.loads(server.seen[-1].body)
    assert (reply.outcome, reply.text) == ("ok", "I have.") and not [*faults(session, body)]
    log = log_of(folder, session).turns
    assert log.messages()[: len(before)] == before and log.request(6).parameters["rules"] == RULES
