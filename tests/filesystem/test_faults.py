"""Promises of harness/filesystem/_faults.py: a fault helps a model, and what no model can mend is raised for a person."""

from __future__ import annotations

import errno
import os

import pytest

from harness.filesystem._faults import WORDS, VerbRefusal, catch_faults, changed_meanwhile, read_only, verb
from harness.filesystem._replace import FileBusy
from harness.filesystem.protocol import FAULTS, FileFault


def fails(fault: Exception) -> object:
    """An act that fails so."""

    def act() -> object:
        raise fault

    return catch_faults("some/path", act)


@pytest.mark.parametrize("number", sorted(WORDS))
def test_what_the_system_refuses_is_a_fault_with_the_path_and_a_sentence(number: int) -> None:
    """Of a kind that the interface explains; the text of the system's own is never all there is."""
    answer = fails(OSError(number, os.strerror(number)))
    assert isinstance(answer, FileFault)
    assert answer.kind in FAULTS
    assert answer.path == "some/path"
    assert answer.text.endswith(".")
    assert len(answer.text.split()) > 4


def test_what_is_a_fault_of_the_machine_is_raised() -> None:
    """A disk that fails, no descriptors left, a bug of ours."""
    for fault in (OSError(errno.EIO, "x"), OSError(errno.EMFILE, "x"), KeyError("x"), MemoryError()):
        with pytest.raises(type(fault)):
            fails(fault)


def test_our_own_refusals_are_faults_too() -> None:
    """With their words; a lock and a name that cannot be one as well."""
    for fault, kind in (
        (VerbRefusal("too_large", "p", "It is."), "too_large"),
        (changed_meanwhile("p"), "changed"),
        (read_only("p", "q"), "read_only"),
        (FileBusy(), "busy"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "x"), "invalid"),
    ):
        answer = fails(fault)
        assert isinstance(answer, FileFault)
        assert answer.kind == kind in FAULTS


def test_what_succeeds_is_passed_on() -> None:
    """As it is."""
    assert catch_faults("p", lambda: 5) == 5


def test_every_kind_of_fault_is_explained_in_a_few_words() -> None:
    """For the page and for a tool."""
    assert all(2 < len(words.split()) < 16 for words in FAULTS.values())


class Verbs:
    """A filesystem of two verbs."""

    @verb
    def ls(self, path: str = ".") -> str:
        """Refused where the path is."""
        raise FileNotFoundError(errno.ENOENT, path)

    @verb
    def glob(self, pattern: str, path: str = ".") -> str:
        """Refused unless the pattern is the path."""
        if pattern == path:
            return path
        raise VerbRefusal("bad_pattern", "", pattern)


def test_a_verb_answers_with_a_fault_of_its_path() -> None:
    """However the path is given, or by default; the result of one that succeeds is its own."""
    verbs = Verbs()
    answers = [verbs.ls(), verbs.ls("a"), verbs.ls(path="b"), verbs.glob("*", "c"), verbs.glob(path="d", pattern="*")]
    assert [one.path for one in answers if isinstance(one, FileFault)] == [".", "a", "b", "c", "d"]
    assert verbs.glob("e", "e") == "e"
