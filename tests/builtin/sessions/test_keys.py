"""Keys: two sessions never meet."""

from __future__ import annotations

import os
import tempfile
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.base.errors import UsageFault
from harness.builtin.sessions import _session, state
from harness.builtin.sessions.keys import SessionKeys, session_keys, states
from harness.builtin.sessions.log import CallRecord
from harness.mission.usage import Usage
from harness.stores import gate
from harness.stores.disk import DiskStore
from harness.stores.store import encoded
from tests.crash import TORTURE

ODD = [
    "..",
    ".",
    "a/b",
    "a",
    "b",
    "Alice",
    "alice",
    "x" * 300,
    "x" * 301,
    "\U0001f600",
    "_files",
    "_index.jsonl",
    "=",
    "queue",
]
TEXTS = st.one_of(
    st.sampled_from(ODD), st.text(min_size=1, max_size=40), st.text("aA./=_-\u00e9e\u0301", min_size=1, max_size=6)
)
PAIRS = st.tuples(TEXTS, TEXTS)

pytestmark = pytest.mark.on_disk


def paths(of: SessionKeys) -> set[str]:
    """Everything that a session alone has."""
    return {encoded(key) for key in (of.state, of.log, of.gate, of.results, of.tasks, of.compaction(1))}


def lowered(of: SessionKeys) -> set[str]:
    """The same on a disk that folds case."""
    return {path.casefold() for path in paths(of)}


@given(PAIRS, PAIRS)
@settings(max_examples=10_000 if TORTURE else 300, deadline=None)
@example(("a", "b/c"), ("a/b", "c"))
@example(("Alice", "s"), ("alice", "s"))
@example(("_files", "s"), ("u", "_files"))
def test_two_sessions_have_no_path_in_common_and_none_leads_out(one: tuple[str, str], two: tuple[str, str]) -> None:
    """Whatever their ids; on disks that fold case, too."""
    first, second = session_keys(*one), session_keys(*two)
    for path in paths(first):
        assert not path.startswith("/") and not {"", ".", ".."} & set(path.split("/"))
        assert all(len(name.encode()) <= 200 for name in path.split("/"))
    if one != two:
        assert not lowered(first) & lowered(second)
        assert not any(path.startswith(encoded(second.top).casefold() + "/") for path in lowered(first))


def test_sessions_of_odd_ids_keep_their_own_states_on_disk() -> None:
    """`..`, `a/b`, `Alice` and `alice`, 300 characters, an emoji: each has its own state, and reads it back."""
    with tempfile.TemporaryDirectory() as folder:
        store = DiskStore(os.path.join(folder, "deep", "sessions"))
        pairs = [(one, two) for one in ODD[:10] for two in ODD[:10]] if TORTURE else list(combinations(ODD[:10], 2))
        for user, name in pairs:
            made = _session.load(store, session_keys(user, name), "helper")
            made.ended(
                CallRecord(call=1, reply=f"{user} {name}"), Usage(), gate.enter(store, session_keys(user, name).gate)
            )
            made.save()
        for user, name in pairs:
            known = state.load(store, session_keys(user, name))[0]
            assert known is not None and (known.user, known.session) == (user, name)
        assert len(states(store)) == len(pairs) and states(store, pairs[0][0])[0] == session_keys(*pairs[0]).state
        assert os.listdir(folder) == ["deep"] and os.listdir(os.path.join(folder, "deep")) == ["sessions"]


@pytest.mark.parametrize("pair", [("", "s"), ("u", ""), ("u", "x" * 5000)])
def test_an_id_that_is_empty_or_endless_is_refused(pair: tuple[str, str]) -> None:
    """With what to do."""
    with pytest.raises(UsageFault, match="The id of a"):
        session_keys(*pair)
