"""The user's crontab: our block comes and goes, and nothing else changes by a byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, Unavailable, UsageFault
from harness.unattended import _crontab as tab
from harness.unattended._crontab import BEGIN, END, CrontabEntry
from tests.missions import House
from tests.unattended.crontabs import Crontab

OTHERS = [
    *("", "\n", "# mine\n", "MAILTO=me\n0 1 * * * backup 50\\% # harness\n", "\n\n\n0 1 * * * a\n\n", "@reboot a\r\n"),
    *("ä\u2028\udcff\n", "# harness schedules: begin of a story\n"),
]


def entry(name: str = "a-1", folder: str = "/my project") -> CrontabEntry:
    """An entry."""
    words = ["/bin/bash", "/h/run.sh", "-C", folder, "schedule", "start", name]
    return CrontabEntry(times="*/30 * * * *", folder=folder, id=name, command=words)


@pytest.mark.parametrize("text", OTHERS)
def test_adding_and_removing_gives_every_byte_back(text: str) -> None:
    """Whatever a person has there; twice the same is once."""
    one, two = entry(), entry("b-2", "/o'ther 100%\t$HOME")
    with_one = tab.with_entries(text, [one])
    assert tab.with_entries(with_one, [one]) == with_one
    assert tab.entries(tab.with_entries(with_one, [one, two])) == [one, two]
    assert tab.with_entries(with_one, []) == text


def test_the_block_stays_where_it_is() -> None:
    """Between what a person wrote above and below it."""
    text = f"above\n{tab.with_entries('', [entry()])}below without an end of line"
    changed = tab.with_entries(text, [entry("b-2")])
    assert changed.startswith(f"above\n{BEGIN}\n") and changed.endswith(f"\n{END}\nbelow without an end of line")
    assert tab.with_entries(changed, []) == "above\nbelow without an end of line"


def test_a_last_line_without_its_end_gets_one() -> None:
    """Cron wants it, and the block begins on a line of its own."""
    assert tab.with_entries("0 1 * * * a", [entry()]).startswith(f"0 1 * * * a\n{BEGIN}\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"a\n{BEGIN}\n", 2),
        (f"a\n\n{END}\n", 3),
        (f"{END}\n{BEGIN}\n", 1),
        (f"{BEGIN}\n{BEGIN}\n{END}\n", 1),
        (f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n", 1),
        (f"{BEGIN}\n0 1 * * * mine\n{END}\n", 2),
        (f"{BEGIN}\n# */30 * * * * /bin/bash /h/run.sh -C /p schedule start a-1\n{END}\n", 2),
        (f"{BEGIN}\n*/30 * * * * /bin/bash /h/run.sh -C '/p schedule start a-1\n{END}\n", 2),
    ],
)
def test_a_block_that_is_not_as_we_wrote_it_is_refused(text: str, line: int) -> None:
    """By line, with what to do."""
    with pytest.raises(BrokenFile, match=f"your crontab, line {line}: .*crontab -e"):
        tab.entries(text)


def test_a_broken_block_leaves_the_crontab_as_it_is(crontab: Crontab) -> None:
    """Every command that needs it ends with 65."""
    text = f"a\n{BEGIN}\n0 1 * * * mine\n{END}\n"
    crontab.file.write_text(text)
    for words in (["add", "--every", "30m"], ["list"], ["remove"]):
        done = crontab.house.harness("schedule", *words)
        assert done.code == 65 and "your crontab, line 3: " in done.err, done
    assert crontab.text == text and not (crontab.house.state / "schedule").exists()


@pytest.mark.parametrize("folder", ["/it's 100%", '/a "b"', "/ä ß", "/$HOME `x`", "/-C", "/*", "/a%b%%c", "/tab\there"])
def test_the_line_of_any_folder_reaches_the_program_whole(tmp_path: Path, folder: str) -> None:
    """As cron unescapes it, and a shell splits it."""
    script = tmp_path / "show"
    script.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    script.chmod(0o755)
    made = entry(folder=folder).replace(command=[str(script), *entry(folder=folder).command[1:]])
    line = made.line.split(" ", 5)[5]
    assert "%" not in line.replace("\\%", "")
    out = subprocess.run(["/bin/sh", "-c", line.replace("\\%", "%")], capture_output=True, text=True, check=True).stdout
    assert out.split("\n")[2] == folder
    assert tab.entries(tab.with_entries("", [made])) == [made]


@pytest.mark.parametrize("folder", ["/a\\b", "/a\nb", "/" + "x" * 960])
def test_a_folder_that_no_crontab_can_hold_is_refused(folder: str) -> None:
    """A backslash means another thing to each cron; Debian's takes 998 characters."""
    with pytest.raises(UsageFault, match="crontab"):
        _ = entry(folder=folder).line


def test_without_the_program_and_where_it_refuses(crontab: Crontab, monkeypatch: pytest.MonkeyPatch) -> None:
    """69, with what it said, or with the other ways."""
    house = crontab.house
    Path(f"{crontab.file}.refused").touch()
    done = house.harness("schedule", "add", "--every", "30m")
    assert done.code == 69 and "errors in crontab file" in done.err and "yours is unchanged" in done.err, done
    assert not (house.state / "schedule" / "schedule.json").exists()
    (crontab.file.parent / "programs" / "crontab").write_text(
        "#!/bin/sh\necho 'You (me) are not allowed' >&2\nexit 1\n"
    )
    with pytest.raises(Unavailable, match="not allowed"):
        tab.read()
    monkeypatch.setenv("PATH", str(crontab.file.parent))
    with pytest.raises(Unavailable, match="a timer for systemd"):
        tab.read()


def test_a_persons_variables_are_those_above_the_block() -> None:
    """Cron gives them to what comes below."""
    text = f"A=1\n# B=2\n C = 'x y'\n0 1 * * * D=4 x\n{BEGIN}\n{END}\nE=5\n"
    assert tab.variables(text) == {"A": "1", "C": "x y"}


def test_schedules_of_two_missions_stand_beside_each_other(crontab: Crontab, tmp_path: Path) -> None:
    """Each is replaced and removed alone."""
    house = crontab.house
    other = House(tmp_path, house.env, "other")
    other.repository()
    assert other.harness("init").code == 0
    crontab.file.write_text("# mine\n")
    for one in (house, other, house):
        assert one.harness("schedule", "add", "--every", "30m").code == 0
    assert [Path(one.folder).name for one in tab.entries(crontab.text)] == ["other", "my project"]
    assert house.harness("schedule", "remove").code == 0
    assert [Path(one.folder).name for one in tab.entries(crontab.text)] == ["other"]
    name = tab.entries(crontab.text)[0].id
    assert house.harness("schedule", "remove", name).out == f"Removed {name}.\n"
    assert crontab.text == "# mine\n"
