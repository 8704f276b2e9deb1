"""A commit by a person's own git: a repository without the hook is served as git serves it."""

from __future__ import annotations

from harness.commands import _commits
from tests.missions import House


def test_without_a_commit_msg_hook_the_message_is_as_it_was(house: House) -> None:
    """`--hooks` asks nothing of a repository that has none."""
    head = house.head()
    made = _commits.make(
        str(house.project), house.git("rev-parse", "HEAD^{tree}"), head, "one\n\ntwo\n", {}, sign=False, hooks=True
    )
    assert house.git("log", "-1", "--format=%B%P", made) == f"one\n\ntwo\n{head}"
