"""Promises of harness/filesystem/local.py: the contract, with ripgrep and without, and what a folder here adds to it."""

from __future__ import annotations

import fcntl
import os
import stat
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.filesystem import _edit, _replace
from harness.filesystem.local import WRITE, Local, Mount
from harness.filesystem.protocol import Filesystem, Listing, WriteResult
from harness.filesystem.transfer import download, upload
from tests import crash
from tests.filesystem.contract import Contract, change, content, kind, lines, names, written
from tests.helpers import passable
from tests.other_user import OtherUser


class TestLocal(Contract):
    """A folder of this machine."""

    def made(self, tmp_path: Path) -> Filesystem:
        """With ripgrep."""
        found = Local(str(tmp_path))
        assert found.program, "the tests need ripgrep: make setup"
        return found


class TestLocalWithoutRipgrep(Contract):
    """The same where ripgrep is not installed."""

    def made(self, tmp_path: Path) -> Filesystem:
        """Without ripgrep, and without the system call that keeps a path beneath its root."""
        found = Local(str(tmp_path), with_rg=False)
        found.beneath.by_kernel = False
        return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a folder beside it that is none of an agent's business."""
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(b"secret\n")
    return tmp_path / "root"


def test_the_root_by_its_own_path_is_the_root(root: Path) -> None:
    """A model that saw it in the output of a command uses it; also by a link, and where a confined command sees it."""
    link = root.parent / "link"
    link.symlink_to(root)
    files = Local(str(link), homes=["/inside"])
    written(files.write(f"{root}/a", b"1"))
    for path in (f"{root}/a", f"{link}/a", "/inside/a", "a"):
        assert content(files.read(path)).data == b"1"
    assert names(files.ls(str(root))) == ["a"]
    assert kind(files.read(f"{root}-other/a")) == "missing"


@pytest.mark.parametrize("by_kernel", [True, False])
def test_a_link_leads_anywhere_beneath_the_root_and_nowhere_else(root: Path, by_kernel: bool) -> None:
    """Relative or absolute, of a file or a folder; what leads out, or round in a circle, is a fault of every verb."""
    files = Local(str(root))
    files.beneath.by_kernel = by_kernel
    upload(files, {"d/deep/f": b"inside\n"})
    inside = {"l1": "d/deep/f", "d/l2": "../d/deep/f", "d/deep/l3": "../../l1", "l4": str(root / "d/deep/f")}
    outside = {
        "o1": "../outside/secret",
        "o2": str(root.parent / "outside/secret"),
        "o3": "/etc/passwd",
        "o4": "d/../../outside/secret",
    }
    for name, target in {
        **inside,
        **outside,
        "fd": "d/deep",
        "od": "../outside",
        "c1": "c2",
        "c2": "c1",
        "gone": "nowhere",
    }.items():
        (root / name).symlink_to(target)
    for name in inside:
        assert content(files.read(name)).data == b"inside\n"
    assert content(files.read("fd/f")).data == b"inside\n"
    for path in (*outside, "od/secret", "od/new", "od"):
        answers: list[object] = [
            files.read(path),
            files.write(path, b"x"),
            files.edit(path, [change("a", "b")]),
            files.ls(path),
        ]
        answers += [files.grep("x", path), download(files, [path])[path]]
        assert {kind(answer) for answer in answers} == {"outside"}, path
    assert (
        kind(files.delete("od/secret"))
        == kind(files.move("od/secret", "x"))
        == kind(files.move("l1", "od/x"))
        == "outside"
    )
    assert kind(files.read("c1")) == "invalid"
    assert kind(files.read("gone")) == "missing"
    assert (root.parent / "outside/secret").read_bytes() == b"secret\n"
    assert os.listdir(root.parent / "outside") == ["secret"]


def test_a_write_goes_through_a_link_and_a_deletion_does_not(root: Path) -> None:
    """The link stays a link; deleted or moved is the link itself."""
    files = Local(str(root))
    upload(files, {"d/f": b"1"})
    (root / "l").symlink_to("d/f")
    (root / "m").symlink_to("d")
    written(files.write("l", b"2"))
    written(files.edit("l", [change("2", "3")]))
    assert ((root / "l").is_symlink(), (root / "d/f").read_bytes()) == (True, b"3")
    assert kind(files.write("l", b"", create=True)) == "exists"
    written(files.move("l", "l2"))
    assert written(files.delete("l2")).count == written(files.delete("m")).count == 1
    assert (root / "d/f").read_bytes() == b"3"
    (root / "t/u").mkdir(parents=True)
    (root / "t/u/out").symlink_to("../../../outside")
    written(files.delete("t"))
    assert (root.parent / "outside/secret").exists()


def test_a_link_opens_no_way_round_what_is_read_only(root: Path) -> None:
    """Neither to the folder nor to the file."""
    (root / ".git").mkdir()
    (root / ".git/config").write_bytes(b"[core]\n")
    (root / "l").symlink_to(".git")
    (root / "c").symlink_to(".git/config")
    files = Local(str(root))
    answers = [files.write("l/config", b""), files.write("c", b""), files.edit("c", [change("core", "x")])]
    answers += [files.write("l/hooks/x", b""), files.delete("l/config"), files.move("l/config", "x")]
    assert {kind(answer) for answer in answers} == {"read_only"}
    assert content(files.read("c")).data == b"[core]\n"


def test_a_folder_with_something_read_only_in_it_stays_where_it_is(root: Path) -> None:
    """To delete or move it would change that, too."""
    (root / "sub/.git").mkdir(parents=True)
    (root / "sub/a").write_bytes(b"")
    files = Local(str(root))
    assert kind(files.delete("sub")) == kind(files.move("sub", "other")) == "read_only"
    assert names(files.ls("sub")) == ["sub/.git", "sub/a"]


def test_a_key_that_is_there_is_not_changed_and_a_new_one_can_be_made(root: Path) -> None:
    """A person's `.env` is in no history; a certificate for a test is made by the agent."""
    (root / ".env").write_bytes(b"KEY=1\n")
    files = Local(str(root))
    answers = [
        files.write(".env", b""),
        files.edit(".env", [change("1", "2")]),
        files.delete(".env"),
        files.move(".env", "x"),
    ]
    assert {kind(answer) for answer in answers} == {"read_only"}
    assert content(files.read(".env")).data == b"KEY=1\n"
    written(files.write("tests/server.pem", b"new"))
    assert kind(files.write("tests/server.pem", b"other")) == "read_only"


def test_what_is_named_may_be_read_only_too(root: Path) -> None:
    """By name anywhere, or by path from the root, with all that is below."""
    files = Local(str(root), read_only=["*.lock", "docs/fixed"])
    for path in ("a.lock", "d/b.lock", "docs/fixed", "docs/fixed/x"):
        assert kind(files.write(path, b"")) == "read_only"
    for path in ("docs/other", "d/docs/fixed", "lock"):
        written(files.write(path, b""))


def test_other_folders_appear_under_a_name(root: Path) -> None:
    """Read-only or writable; with the same bounds as the root; searched where they are named."""
    other = root.parent / "outside"
    files = Local(
        str(root), also={"results": Mount(path=str(other)), "work": Mount(path=str(root.parent / "work"), mode=WRITE)}
    )
    (root.parent / "work").mkdir()
    (root / "results").mkdir()
    (root / "results/shadowed").write_bytes(b"")
    assert names(files.ls()) == ["results", "work"]
    assert names(files.ls("results")) == ["results/secret"]
    assert content(files.read("/results/secret")).data == b"secret\n"
    assert kind(files.read("results/../../outside/secret")) == "outside"
    assert kind(files.write("results/secret", b"")) == kind(files.delete("results/secret")) == "read_only"
    written(files.write("work/a/b", b"secret\n"))
    assert (root.parent / "work/a/b").read_bytes() == b"secret\n"
    assert lines(files.grep("secret", "results")) == [("results/secret", 1, b"secret")]
    assert lines(files.grep("secret", "work/a/b")) == [("work/a/b", 1, b"secret")]
    assert names(files.glob("*", "work")) == ["work/a/b"]
    assert kind(files.delete("work")) == "invalid"
    written(files.move("work/a/b", "moved"))
    assert (root / "moved").read_bytes() == b"secret\n"


def test_a_file_keeps_its_mode_and_a_new_one_gets_the_usual(root: Path) -> None:
    """By a write and by an edit."""
    files = Local(str(root))
    script = root / "run.sh"
    script.write_bytes(b"one\n")
    script.chmod(0o750)
    written(files.write("run.sh", b"two\n"))
    written(files.edit("run.sh", [change("two", "three")]))
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    before = os.umask(0o027)
    try:
        written(files.write("d/new", b""))
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "d/new").stat().st_mode) == 0o640
    assert stat.S_IMODE((root / "d").stat().st_mode) == 0o750


def test_a_file_that_nobody_may_write_is_read_only(root: Path) -> None:
    """Also for root, whom the system would let."""
    files = Local(str(root))
    (root / "f").write_bytes(b"x")
    (root / "f").chmod(0o444)
    assert kind(files.write("f", b"")) == kind(files.edit("f", [change("x", "y")])) == "read_only"
    assert (root / "f").read_bytes() == b"x"


AS_NOBODY = """import sys
from harness.filesystem.protocol import Replacement
from harness.filesystem.local import Local
files = Local(sys.argv[1])
answers = [files.read("secret"), files.write("secret", b""), files.write("shown", b""), files.write("new", b"")]
answers += [files.write("all/shown", b""), files.edit("all/shown", [Replacement(old=b"hit", new=b"x", everywhere=False)])]
assert {answer.kind for answer in answers} == {"denied"}, answers
found = files.grep("hit")
assert [(one.path, one.line, one.text) for one in found.matches] == [("open", 1, b"hit"), ("shown", 1, b"hit")]
assert found.skipped == {"secret": "permission denied"}, found
"""


def test_what_the_system_denies_is_a_fault(root: Path, nobody: OtherUser) -> None:
    """Reading, writing, a folder that may not be written."""
    root.chmod(0o755)
    for name, mode in (("secret", 0o600), ("open", 0o666), ("shown", 0o644)):
        (root / name).write_bytes(b"hit\n")
        (root / name).chmod(mode)

    (root / "all").mkdir()
    (root / "all").chmod(0o777)
    (root / "all/shown").write_bytes(b"x\n")
    (root / "all/shown").chmod(0o644)
    passable(root)
    nobody.runs(AS_NOBODY, str(root))


def test_another_name_of_a_file_keeps_the_old_content(root: Path) -> None:
    """Hard links: a change of one name is no change of what another name has, inside or outside the root."""
    files = Local(str(root))
    os.link(root.parent / "outside/secret", root / "f")
    written(files.edit("f", [change("secret", "public")]))
    assert ((root / "f").read_bytes(), (root.parent / "outside/secret").read_bytes()) == (b"public\n", b"secret\n")


@pytest.mark.parametrize("how", ["fifo", "folder"])
def test_what_is_no_file_blocks_nobody_and_stays(root: Path, how: str) -> None:
    """A pipe without a writer, and a folder, are faults of every verb that needs a file."""
    os.mkfifo(root / "x") if how == "fifo" else (root / "x").mkdir()
    files = Local(str(root))
    wanted = "not_regular" if how == "fifo" else "is_folder"
    answers = [files.read("x"), files.write("x", b""), files.edit("x", [change("a", "b")]), download(files, ["x"])["x"]]
    assert {kind(answer) for answer in answers} == {wanted}
    if how == "fifo":
        assert kind(files.grep("x", "x")) == "not_regular"
        assert (names(files.glob("*")), lines(files.grep("x"))) == ([], [])
        found = files.ls()
        assert isinstance(found, Listing)
        assert found.entries[0].kind == "other"
        written(files.delete("x"))


def test_a_name_that_is_no_text_is_listed_and_can_be_used(root: Path) -> None:
    """Its bytes are kept as surrogates, as Python has them."""
    with open(os.path.join(os.fsencode(root), b"caf\xe9"), "wb") as file:
        file.write(b"hit\n")
    files = Local(str(root))
    for found in (names(files.ls()), names(files.glob("*")), [path for path, _, _ in lines(files.grep("hit"))]):
        assert found == ["caf\udce9"]
    assert content(files.read("caf\udce9")).data == b"hit\n"
    assert kind(files.read("caf\ud800")) == "invalid"


def test_a_failed_write_changes_nothing_and_leaves_nothing(root: Path) -> None:
    """A limit on the size of a file stands for a full disk."""
    import resource
    import signal

    (root / "f").write_bytes(b"old")

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        files = Local(str(root))
        assert {kind(files.write("f", b"x" * 5000)), kind(files.write("new", b"x" * 5000))} == {"too_large"}

    assert crash.in_child(limited) == 0
    assert (os.listdir(root), (root / "f").read_bytes()) == (["f"], b"old")


@pytest.mark.parametrize("nameless", [True, False])
def test_a_kill_leaves_the_old_file_or_the_new(root: Path, nameless: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each call that changes the disk; at most a hidden file with the content besides."""
    if not nameless:
        monkeypatch.setattr(_replace, "_nameless", lambda folder: None)  # a system without files without a name
    for name in ("write", "fsync", "link", "rename", "fchmod"):
        (root / "f").write_bytes(b"old")

        def killed(name: str = name) -> None:
            setattr(os, name, lambda *args, **kwargs: os._exit(9))
            Local(str(root)).write("f", b"new")

        crash.in_child(killed)
        assert (root / "f").read_bytes() in (b"old", b"new")
        left = [one for one in os.listdir(root) if one != "f"]
        assert all(one.startswith(".f.") and one.endswith(".tmp") for one in left)
        assert len(left) <= (name == "rename" or not nameless)
        for one in left:
            (root / one).unlink()


def test_a_lock_of_another_program_is_waited_for_and_not_for_ever(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the fault says so."""
    monkeypatch.setattr(_replace, "LOCK_SECONDS", 0.2)
    (root / "f").write_bytes(b"x")
    with open(root / "f", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert kind(Local(str(root)).edit("f", [change("x", "y")])) == "busy"
    written(Local(str(root)).edit("f", [change("x", "y")]))


def test_a_reader_has_the_old_content_or_the_new(root: Path) -> None:
    """Never a part of one, while another process writes."""
    files, contents = Local(str(root)), {b"a" * 300_000, b"b" * 500_000}
    written(files.write("f", b"a" * 300_000))

    def rewrite() -> None:
        for number in range(60):
            files.write("f", b"ab"[number % 2 : number % 2 + 1] * (500_000 if number % 2 else 300_000))

    writer = crash.start(rewrite)
    for _ in range(300):
        assert content(files.read("f")).data in contents
    assert crash.end(writer) == 0


@pytest.mark.parametrize("expects", [True, False])
def test_a_change_by_another_program_during_an_edit_is_not_lost(
    root: Path, monkeypatch: pytest.MonkeyPatch, expects: bool
) -> None:
    """One that takes no lock, such as a person's editor: the edit begins again, or says that the file changed."""
    files, real, others = Local(str(root)), _edit.apply, [b"theirs\nours\n"]
    digest = written(files.write("f", b"ours\n")).digest

    def interrupted(*given: Any) -> Any:
        if others:
            (root / "f").write_bytes(others.pop())
        return real(*given)

    monkeypatch.setattr(_edit, "apply", interrupted)
    answer = files.edit("f", [change("ours", "mine")], expect=digest if expects else "")
    if expects:
        assert kind(answer) == "changed"
    assert (root / "f").read_bytes() == (b"theirs\nours\n" if expects else b"theirs\nmine\n")


def test_two_hundred_edits_by_eight_processes_lose_none(root: Path) -> None:
    """Half of them compare and set, and try again when the file changed."""
    files = Local(str(root))
    written(files.write("f", b"begin\nend\n"))

    def edit(process: int) -> None:
        for number in range(25):
            expect = ""
            while True:
                if process % 2:
                    expect = content(files.read("f")).digest
                answer = files.edit("f", [change("end\n", f"{process}-{number}\nend\n")], expect=expect)
                if isinstance(answer, WriteResult):
                    break
                assert kind(answer) == "changed"
                assert process % 2, "only who expects a content is refused"

    pids = [crash.start(partial(edit, process)) for process in range(8)]
    assert [crash.end(pid) for pid in pids] == [0] * 8
    found = content(files.read("f")).data.decode().split()
    assert sorted(found) == sorted(
        ["begin", "end", *(f"{process}-{number}" for process in range(8) for number in range(25))]
    )


def test_of_eight_processes_that_create_one_file_one_wins(root: Path) -> None:
    """Each time."""
    files = Local(str(root))

    def create(process: int) -> None:
        won = [
            str(number)
            for number in range(20)
            if isinstance(files.write(f"f{number}", b"%d" % process, create=True), WriteResult)
        ]
        (root.parent / f"won{process}").write_text("\n".join(won))

    pids = [crash.start(partial(create, process)) for process in range(8)]
    assert [crash.end(pid) for pid in pids] == [0] * 8
    won = {process: (root.parent / f"won{process}").read_text().split() for process in range(8)}
    assert sorted(number for one in won.values() for number in one) == sorted(map(str, range(20)))
    for process, numbers in won.items():
        assert all((root / f"f{number}").read_bytes() == b"%d" % process for number in numbers)
