"""The lowest layer keeps its promises: whole files, whole lines, locks that die with their holder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import signal
import socket
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, LockBusy
from harness.state import files, json_lines
from tests.crash import RAISED, end, in_child, start, stops
from tests.helpers import put, steps


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file in a folder; neither exists yet."""
    return str(tmp_path / "folder" / "file")


@pytest.fixture
def lines(tmp_path: Path) -> str:
    """A file of whole lines in an existing folder."""
    return str(tmp_path / "lines")


def test_absent_empty_and_there_are_three_answers(path: str) -> None:
    """No file gives None, never empty bytes."""
    assert (files.read(path), files.read_text(path), files.read_json(path), files.length(path)) == (None, None, None, 0)
    put(path, "")
    assert (files.read(path), files.read_text(path), files.length(path)) == (b"", "", 0)
    assert files.read(path + "/below a file") is None


def test_a_byte_that_is_no_text_is_named_by_its_line(path: str) -> None:
    """A person finds it without a hex dump."""
    put(path, b"one\ntwo\nth\xffree\n")
    with pytest.raises(BrokenFile, match=rf"{path}, line 3: not UTF-8 text"):
        files.read_text(path)


@pytest.mark.parametrize(
    ("data", "line"), [(b"", 1), (b"{\n1}", 2), (b'{"a":1}\n\nx', 3), (b"[" * 100_000, 1), (b"9" * 5000, 1)]
)
def test_json_that_does_not_parse_is_named_by_its_line(path: str, data: bytes, line: int) -> None:
    """Also if the parser itself fails: too deep, or a number too long."""
    with pytest.raises(BrokenFile) as caught:
        files.parse_json(data, path)
    assert caught.value.line == line


@pytest.mark.parametrize("value", [{"a": ["é", "\u2028", 1.5, None]}, "one\ntwo", {"name": "\udcff"}])
def test_json_is_one_line_that_comes_back(value: object, path: str) -> None:
    """Also text that no encoding accepts: a file name that is not UTF-8."""
    data = files.dump_json(value)
    assert data.count(b"\n") == 1
    assert files.parse_json(data, path) == value


def test_read_from_gives_what_is_there(path: str) -> None:
    """Past the end, or without a file, it is nothing."""
    assert files.read_from(path, 0, 9) == b""
    put(path, "0123456789")
    assert (files.read_from(path, 8, 9), files.read_from(path, 99, 9)) == (b"89", b"")


def test_replace_leaves_only_the_file(path: str) -> None:
    """It creates the folder, leaves no temporary file, and sets the requested mode."""
    for data in (b"one", b"two"):
        files.replace(path, data, files.PRIVATE)
        assert files.read(path) == data
    assert os.listdir(os.path.dirname(path)) == ["file"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_kill_at_any_call_leaves_the_old_file_or_the_new_one(path: str) -> None:
    """A reader never sees a partial file."""
    put(path, "old")
    seen = []
    for _ in stops(lambda: files.replace(path, b"new" * 1000)):
        seen.append(files.read(path))
        assert seen[-1] in (b"old", b"new" * 1000)
        put(path, "old")
    assert (seen[0], seen[-1]) == (b"old", b"new" * 1000)


def limited(size: int, action: Callable[[], object]) -> int:
    """Run `action` in a child whose files cannot grow above `size` bytes."""

    def attempt() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        action()

    return in_child(attempt)


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(path: str) -> None:
    """The fault is raised and the temporary file is removed."""
    put(path, "old")
    assert limited(100, lambda: files.replace(path, b"x" * 200)) == RAISED
    assert files.read(path) == b"old"
    assert os.listdir(os.path.dirname(path)) == ["file"]


def test_a_full_disk_is_said_with_the_file(path: str) -> None:
    """A person may have several disks."""

    def write() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with pytest.raises(OSError, match="File too large") as fault:
            files.replace(path, b"x" * 200)
        assert fault.value.filename == path

    assert limited(100, write) == 0


def test_a_quick_replacement_on_a_full_disk_leaves_nothing_beside_it_either(path: str) -> None:
    """Every launch tries it: leftovers would fill the disk further."""
    put(path, "old")
    assert limited(100, lambda: files.replace_quickly(path, b"x" * 200)) == RAISED
    assert files.read(path) == b"old"
    assert os.listdir(os.path.dirname(path)) == ["file"]


def test_quick_replacement_keeps_files_whole_too(path: str) -> None:
    """It gives up only durability."""
    files.replace_quickly(path, b"one")
    files.replace_quickly(path, b"two")
    assert files.read(path) == b"two"


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    """The second caller gets an error that the name is taken."""
    folder = str(tmp_path / "run")
    assert [files.claim_folder(folder), files.claim_folder(folder)] == [True, False]


def test_remove_move_and_names_take_absence_lightly(path: str, tmp_path: Path) -> None:
    """A missing file is no error; a move creates its target's folder."""
    files.remove(path)
    assert files.names(os.path.dirname(path)) == []
    put(path, "x")
    files.move(path, str(tmp_path / "other" / "b"))
    put(str(tmp_path / "other" / "a"), "y")
    assert files.names(str(tmp_path / "other")) == ["a", "b"]
    assert not os.path.exists(path)


TAILS = [
    (b"", b""),
    (b"whole\n", b"whole\n"),
    (b"whole\ntorn", b"whole\ntorn\n"),
    (b"whole\n" + b"\0" * 9000, b"whole\n"),
    (b"whole\ntorn\0\0", b"whole\ntorn\n"),
    (b"\0" * 5000, b""),
    (b"a" * 4096 + b"\0" * 4096, b"a" * 4096 + b"\n"),
    (b"in\0side\n", b"in\0side\n"),
]


@pytest.mark.parametrize(("before", "kept"), TAILS)
def test_a_torn_tail_is_closed_and_nul_bytes_are_cut_before_the_next_line(
    lines: str, before: bytes, kept: bytes
) -> None:
    """Text torn by a power cut stays as a line of its own; only the NUL bytes are removed."""
    put(lines, before)
    files.add_line(lines, b"next\n")
    assert files.read(lines) == kept + b"next\n"


@pytest.mark.parametrize(("before", "kept"), TAILS)
def test_add_lines_says_where_its_lines_begin(lines: str, before: bytes, kept: bytes) -> None:
    """Also after a line that it closed itself."""
    put(lines, before)
    descriptor = os.open(lines, os.O_RDWR | os.O_APPEND)
    assert files.add_lines(descriptor, b"next\n") == len(kept)
    os.close(descriptor)


@pytest.mark.parametrize("room", [0, 1, 50])
def test_a_short_write_is_taken_back_and_raised(lines: str, room: int) -> None:
    """A full disk never leaves half a line."""
    put(lines, b"whole\n" * 10)
    assert limited(60 + room, lambda: files.add_line(lines, b"x" * 99 + b"\n")) == RAISED
    assert files.read(lines) == b"whole\n" * 10


def test_a_transcript_only_grows_and_is_private(path: str) -> None:
    """Opened again, it continues at its end."""
    os.makedirs(os.path.dirname(path))
    for text in (b"one\n", b"two\n"):
        transcript = files.TranscriptFile(path)
        transcript.write(text)
        transcript.close()
    assert files.read(path) == b"one\ntwo\n"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_lock_has_one_holder_and_says_who(path: str) -> None:
    """Busy reports what the holder wrote."""
    with files.Lock(path) as held:
        held.sign({"run": "r-1"})
        assert not files.is_free(path)
        assert files.Lock(path).take() is False
        with pytest.raises(LockBusy, match="the mission is busy: run r-1"):
            files.take_or_busy(files.Lock(path), "the mission")
    assert files.is_free(path)


def test_a_lock_file_stays_small_whoever_signs_it(path: str) -> None:
    """Also through a descriptor that appends, as a shell's `>>` opens one, and where it had grown before."""
    put(path, "x" * 100_000)
    for number in range(8):
        held = files.Lock(path)
        held.descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        held.sign({"run": f"r-{number}"})
        held.release()
        assert os.path.getsize(path) < 2 * files.MAX_SIGNATURE_BYTES


def test_those_who_look_at_a_free_lock_do_not_take_each_other_for_its_holder(path: str) -> None:
    """`log -f` next to recovery: both see a dead run as dead, however often they look."""
    put(path, "")

    def look() -> None:
        if not all(files.is_free(path) for _ in range(10_000)):
            raise OSError

    assert [end(child) for child in [start(look) for _ in range(4)]] == [0] * 4


def test_a_look_at_a_lock_makes_no_file(path: str) -> None:
    """A run removes its lock when it closes; a reader at that moment must not create it again without a holder."""
    put(path, "")
    stopped, stop = os.pipe()
    os.set_blocking(stopped, False)

    def look() -> None:
        while True:
            files.is_free(path)
            with suppress(BlockingIOError):
                os.read(stopped, 1)
                return

    child = start(look)
    left = 0
    for _ in range(3000):
        os.close(os.open(path, os.O_CREAT))
        os.unlink(path)
        left += os.path.exists(path)
    os.write(stop, b"x")
    assert (end(child), left, files.names(os.path.dirname(path))) == (0, 0, [])
    os.close(stopped)
    os.close(stop)


@pytest.mark.parametrize("signed", [b"", b"{torn", b"[1]", b"5", b"\xff"])
def test_a_holder_that_cannot_be_read_is_unknown(path: str, signed: bytes) -> None:
    """The text is information for people; invalid text stops no command."""
    put(path, signed)
    with files.Lock(path), pytest.raises(LockBusy, match="holder unknown"):
        files.take_or_busy(files.Lock(path), "it")


def test_a_lock_dies_with_its_holder(path: str) -> None:
    """A kill needs no cleanup."""

    def hold_and_die() -> None:
        files.Lock(path).take()
        os.kill(os.getpid(), 9)

    assert in_child(hold_and_die) == -9
    assert files.is_free(path)


def test_a_lock_lives_as_long_as_any_holder_of_its_descriptor(path: str) -> None:
    """A guardian that inherited the descriptor keeps the mission locked."""
    lock = files.Lock(path)
    lock.take()
    guardians = os.dup(lock.descriptor)
    lock.release()
    assert not files.is_free(path)
    os.close(guardians)
    assert files.is_free(path)


def test_a_lock_can_be_waited_for(path: str) -> None:
    """The waiter gets it when the holder releases it."""
    lock = files.Lock(path)
    lock.take()
    ours, theirs = os.pipe()

    def wait() -> None:
        lock.release()  # the descriptor inherited through fork would keep the lock
        os.write(theirs, b"waiting")
        with files.Lock(path):
            os.write(theirs, b"taken")

    child = start(wait)
    assert os.read(ours, 9) == b"waiting"
    lock.release()
    assert os.read(ours, 9) == b"taken"
    assert end(child) == 0
    os.close(ours)
    os.close(theirs)


def test_flock_on_the_same_path_is_the_same_lock(path: str) -> None:
    """run.sh and the filelock package exclude us, and we exclude them."""
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="ascii") as file:
        assert files.take_descriptor(file.fileno())
        assert not files.is_free(path)
    with files.Lock(path), open(path, encoding="ascii") as file, pytest.raises(OSError) as caught:
        assert not files.take_descriptor(file.fileno())
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert caught.value.errno == errno.EAGAIN


def stand_in(path: str, kind: str) -> None:
    """Put something that is no file at `path`, as an agent may do."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        os.mkdir(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as found, contextlib.chdir(os.path.dirname(path)):
            found.bind(os.path.basename(path))  # the length of its address is bounded
    else:
        os.symlink({"loop": path, "device": "/dev/zero"}[kind], path)


def test_a_file_is_read_block_by_block(path: str) -> None:
    """From any place on; an absent file is empty."""
    assert list(files.blocks(path)) == []
    put(path, b"0123456789")
    assert list(files.blocks(path, 3, 4)) == [b"3456", b"789"]
    assert list(files.blocks(path, 10)) == []


LOOKS: dict[str, Callable[[str], object]] = {
    "read": files.read,
    "read_from": lambda path: files.read_from(path, 0, 10),
    "length": files.length,
    "blocks": lambda path: list(files.blocks(path)),
    "backwards": lambda path: next(json_lines.backwards(path)),
    "add_line": lambda path: files.add_line(path, b"x\n"),
    "Transcript": files.TranscriptFile,
    "Lock": lambda path: files.Lock(path).take(),
}


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "loop", "device"])
@pytest.mark.parametrize("look", LOOKS)
def test_what_is_no_file_holds_up_nobody_and_is_named(path: str, kind: str, look: str) -> None:
    """Reading a pipe in a file's place would block forever, and a device has no end."""
    stand_in(path, kind)
    with pytest.raises(BrokenFile, match=r"folder/file: it is a .*, where a file belongs\. Move it away\."):
        LOOKS[look](path)


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "loop", "device"])
def test_a_name_that_only_we_use_is_made_free(path: str, kind: str) -> None:
    """The temporary name beside a target can be guessed: whatever is there is renamed, and never followed."""
    temporary = f"{path}.{os.getpid()}.tmp"
    stand_in(temporary, kind)
    files.replace(path, b"data")
    os.rename(temporary + ".1", temporary)
    files.replace_quickly(path, b"more")
    assert files.read(path) == b"more"


def test_a_temporary_file_is_abandoned_once_its_writer_is_gone(tmp_path: Path) -> None:
    """Not while it lives; and what no `replace` names is not ours, nor is a folder."""
    gone = in_child_pid()
    names = [f"a.json.{gone}.tmp", f"b.{os.getpid()}.tmp", "c.tmp", ".tmp", "d.1x.tmp", f"e.{'9' * 30}.tmp", "f.json"]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / f"g.{gone}.tmp").mkdir()
    assert files.abandoned(str(tmp_path)) == [str(tmp_path / names[0])]
    assert files.abandoned(str(tmp_path / "nowhere")) == []


def in_child_pid() -> int:
    """The id of a process that has ended."""
    pid = start(lambda: None)
    end(pid)
    return pid


def test_a_long_tail_of_nul_bytes_costs_an_append_little(tmp_path: Path) -> None:
    """A power cut, or a hole in the file, may leave any number of them: they are passed over in large steps."""
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.write(b"one\n")
        file.truncate(64 << 20)
    assert steps(lambda: files.add_line(str(path), b"two\n")) < 2000
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_link_is_not_followed_to_write(tmp_path: Path) -> None:
    """What it leads to is not ours; to read, it is."""
    theirs, link = tmp_path / "theirs", str(tmp_path / "link")
    theirs.write_bytes(b"theirs\n")
    os.symlink(theirs, link)
    for write in (lambda: files.add_line(link, b"x\n"), lambda: files.cut(link, 0), lambda: files.Lock(link).take()):
        with pytest.raises(BrokenFile, match="a link, where a file belongs"):
            write()
    assert files.read(link) == theirs.read_bytes() == b"theirs\n"
    files.replace(link, b"ours\n")
    assert (theirs.read_bytes(), os.path.islink(link)) == (b"theirs\n", False)


def test_threads_of_a_process_that_replace_the_same_file_do_not_meet(tmp_path: Path) -> None:
    """Each has a temporary file of its own; the file is one of the contents, whole, and nothing else is left."""
    path = str(tmp_path / "state.json")
    contents = [bytes([65 + at]) * 200_000 for at in range(8)]

    def replaced(data: bytes) -> None:
        for _ in range(10):
            files.replace(path, data, quickly=True)

    with ThreadPoolExecutor(len(contents)) as pool:
        list(pool.map(replaced, contents))
    assert Path(path).read_bytes() in contents
    assert os.listdir(tmp_path) == ["state.json"]
