"""Rules on calls: which call each is about, and that a deny wins over everything else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.workspace import rules
from harness.workspace.rules import ALLOW, ASK, DENY, PATH, TEXT, ToolRules


@pytest.mark.parametrize(
    ("rule", "tool", "about", "kind", "fits"),
    [
        ("execute", "execute", "anything", TEXT, True),
        ("execute", "executes", "anything", TEXT, False),
        ("maps_*", "maps_find", "{}", TEXT, True),
        ("execute(git push*)", "execute", "git push origin", TEXT, True),
        ("execute(git push*)", "execute", "git pull", TEXT, False),
        ("execute(*)", "execute", "two\nlines", TEXT, True),
        ("write_file(docs/**)", "write_file", "docs/a/b.md", PATH, True),
        ("write_file(docs/**)", "write_file", "docs/.hidden/b", PATH, True),
        ("write_file(docs/**)", "write_file", "mydocs/b", PATH, False),
        ("list_files(docs/**)", "list_files", "docs", PATH, True),
        ("list_files(docs/**)", "list_files", "a/docs", PATH, False),
        ("write_file(docs/*)", "write_file", "docs/a/b.md", PATH, False),
        ("read_file(*.pem)", "read_file", "deep/down/key.pem", PATH, True),
        ("read_file(.env)", "read_file", "a/.env", PATH, True),
        ("*(secret/**)", "edit_file", "secret/a", PATH, True),
    ],
)
def test_what_a_rule_is_about(rule: str, tool: str, about: str, kind: str, fits: bool) -> None:
    """A tool by name, and a command or a path by pattern."""
    assert not rules.fault(rule)
    assert rules.parse(rule).fits(tool, about, kind) == fits


@pytest.mark.parametrize("text", ["", " ", "a b", "(x)", "execute(", "execute()", "execute( )", "a(b", "write_file([)"])
def test_what_is_no_rule(text: str) -> None:
    """It is never read as one that restricts nothing."""
    assert rules.fault(text)


def test_deny_wins_then_what_is_allowed_then_what_is_asked() -> None:
    """A person's lasting yes settles a question, and nothing else."""
    known = ToolRules(
        allow=[["execute", "read_file"]], deny=["execute(rm *)"], ask=["execute(git *)"], granted=["execute(git log)"]
    )
    seen = {one: known.verdict("execute", [one])[0] for one in ("ls", "git push", "git log", "rm -r x")}
    assert seen == {"ls": ALLOW, "git push": ASK, "git log": ALLOW, "rm -r x": DENY}
    assert known.replace(granted=["execute(rm *)"]).verdict("execute", ["rm -r x"]) == (DENY, "execute(rm *)")
    assert known.verdict("write_file", ["a"], PATH)[0] == DENY
    assert known.offers("execute") and not known.offers("write_file")
    assert not ToolRules(deny=["maps_*"]).offers("maps_find") and ToolRules(deny=["maps_*(x)"]).offers("maps_find")


def test_of_a_command_with_parts_each_must_be_allowed_and_none_denied() -> None:
    """`git status; rm` is not what `git *` allows."""
    known = ToolRules(allow=[["execute(git *)"]])
    assert known.verdict("execute", ["git status"])[0] == ALLOW
    assert known.verdict("execute", ["git status; rm x", "git status", "rm x"])[0] == DENY


def test_what_is_narrowed_is_never_wider() -> None:
    """Each list must allow; None is no list, an empty one allows nothing."""
    known = ToolRules(allow=[["read_*", "execute"]], deny=["execute(rm*)"])
    assert known.narrowed(None) == known
    less = known.narrowed(["execute", "write_file"])
    assert [less.offers(name) for name in ("execute", "read_file", "write_file")] == [True, False, False]
    assert less.verdict("execute", ["rm x"])[0] == DENY
    assert not known.narrowed([]).offers("execute")


@settings(max_examples=300, deadline=None)
@given(st.text(min_size=1, max_size=30), st.sampled_from([TEXT, PATH]))
def test_a_lasting_yes_is_for_this_call_alone(about: str, kind: str) -> None:
    """Signs of patterns in it are taken as they are."""
    if "\0" in about or (
        kind == PATH and (about != about.strip("/") or not about.strip(".") or "//" in about or "/." in about)
    ):
        return
    rule = rules.exact("execute", about, kind)
    if rules.fault(rule):
        return
    assert rules.parse(rule).fits("execute", about, kind)
    assert not rules.parse(rule).fits("execute", about + "x", kind)


def test_of_two_lists_only_what_both_allow_is_left() -> None:
    """The narrower of two rules, where one is within the other."""
    assert rules.within(["execute(git *)", "read_file", "a_b"], ["execute", "a_*", "write_file"]) == [
        "execute(git *)",
        "a_b",
    ]
    assert rules.within(["execute"], ["execute(git *)"]) == []
