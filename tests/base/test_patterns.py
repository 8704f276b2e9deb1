"""Promises of harness/base/patterns.py: a glob matches what a shell's would."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.patterns import BadPattern, braces, glob, names_hidden, one_name

NAMES = st.text("ab.-]!", min_size=1, max_size=6)
WILD = (
    st.lists(st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]", ".", "-"]), min_size=1, max_size=5)
    .map("".join)
    .filter(lambda one: one != ".")
)


@given(name=NAMES, pattern=WILD)
def test_one_name_is_matched_as_by_a_shell(name: str, pattern: str) -> None:
    """But that a wildcard at the start matches no hidden name."""
    wanted = fnmatch.fnmatchcase(name, pattern) and not (name[0] == "." and pattern[0] in "*?[")
    assert bool(glob("/" + pattern).match(name)) == wanted
    assert bool(glob("/" + pattern, hidden=True).match(name)) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", "a.py d/a.py d/e/a.py", "a.pyc .a.py d/.a.py .d/a.py"),
        ("a/*.py", "a/b.py", "b/a/b.py a/b/c.py a/.b.py"),
        ("a/**", "a/b a/b/c", "a a/.b a/.b/c"),
        ("a/**/b", "a/b a/c/b a/c/d/b", "a/cb a/.c/b"),
        ("**", "a a/b", ".a a/.b"),
        ("**/.*", ".a d/.a", "a .d/a"),
        (".d/**", ".d/a .d/.a .d/.e/a", "d/.a"),
        ("**/.e", ".e d/.e .d/.e", ".d/e"),
        ("{.d,a}/*", ".d/.a a/b", "a/.b"),
        ("a/", "a", "a/b"),
        ("{a,b/{c,d}}.x", "a.x b/c.x b/d.x", "b.x c.x"),
        ("{a,b}.x", "a.x d/b.x", "c.x"),
        ("[a-c]x", "bx", "dx -x"),
        ("[]a]x", "]x ax", "bx"),
        ("[^a]x", "bx", "ax"),
        (r"\*\?\{", "*?{", "ab{"),
        ("a**b", "ab axb", "a/b"),
        ("a{,b}", "a ab", "b"),
        ("./a", "a", "b/a"),
    ],
)  # fmt: skip
def test_a_glob_matches_these_and_not_those(pattern: str, yes: str, no: str) -> None:
    """A name at any depth, or with a slash the path. A pattern with a hidden name matches other hidden names, too."""
    wanted = glob(pattern)
    assert [path for path in yes.split() if not wanted.match(path)] == []
    assert [path for path in no.split() if wanted.match(path)] == []


@pytest.mark.parametrize(
    "pattern", ["", "/", "a{b", "[a", "[]", "[!]", "[b-a]", "a\\", "{" + "{a,b}" * 10 + "}{a,b}{a,b}", "\0"]
)
def test_what_is_no_glob_is_said_to_be_none(pattern: str) -> None:
    """Also one that stands for very many."""
    with pytest.raises(BadPattern):
        glob(pattern)


def test_braces_are_all_their_alternatives() -> None:
    """Nested ones too; escaped ones, and those in brackets, are signs."""
    assert braces("a{b,c{d,e}}f") == ["abf", "acdf", "acef"]
    assert braces(r"a\{b,c\}") == [r"a\{b,c\}"]
    assert braces("[{,}]") == ["[{,}]"]
    assert [names_hidden(one) for one in (".a", "a/.b/c", "{a,.b}", "a.b", "./a", "../a")] == [True] * 3 + [False] * 3


def test_a_slash_at_the_end_asks_for_folders_where_there_are_any() -> None:
    """A folder is a path with such a slash; each alternative of a brace asks by itself."""
    wanted = glob("{src/*/,*.md,**/.d/}", folders=True)
    assert [path for path in ("src/a/", "x.md", ".d/", "a/.d/") if not wanted.match(path)] == []
    assert [path for path in ("src/a", "src/a/b/", "src/", "x.md/", ".d", "src/.a/") if wanted.match(path)] == []


def test_a_name_with_other_signs_is_itself() -> None:
    """Nothing of a regular expression shows through."""
    assert glob("/a+b(c)|d.$^").match("a+b(c)|d.$^")
    assert one_name("a.b") == r"a\.b"
