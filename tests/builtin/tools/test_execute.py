"""execute: a command ends when it should, with what it started, and its output comes bounded or by page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.builtin.tools import _execute, _jobs
from tests.builtin.tools.benches import Bench
from tests.missions import CHECKOUT, until


def test_a_command_gives_its_exit_status_and_its_output(bench: Bench) -> None:
    """Both streams; a status other than 0 is an answer, no failure of the tool."""
    bench.write("src/a.txt", "x")
    assert re.fullmatch(r"exit 0 after \d+\.\d s\na\.txt", bench.said("execute", command="ls", working_directory="src"))
    said = bench.said("execute", command="echo out; echo err >&2; exit 3")
    assert said.startswith("exit 3 after") and "out\n" in said and "err" in said
    assert bench.said("execute", command="true").endswith("\n(no output)")


def test_the_default_timeout_is_two_minutes_and_the_most_is_ten() -> None:
    """As the description says."""
    assert (_execute.DEFAULT_SECONDS, _execute.MOST_SECONDS) == (120, 600)
    assert "default 120, at most 600" in _execute.TOOL.description


def test_the_default_is_what_a_command_gets(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not another one that the tool always sends."""
    monkeypatch.setattr(_execute, "DEFAULT_SECONDS", 0.4)
    assert "timeout of 0.4 s" in bench.refused("execute", command="sleep 60")


def test_a_command_starts_in_its_folder_and_in_none_outside(bench: Bench) -> None:
    """Two dots in a name lead nowhere."""
    bench.write("a..b/x.txt", "")
    assert bench.said("execute", command="ls", working_directory="a..b").endswith("\nx.txt")
    for outside in ("..", "a..b/../..", "/etc"):
        bench.refused("execute", command="ls", working_directory=outside)


def test_a_timeout_is_kept_and_what_was_printed_before_it_is_shown(bench: Bench) -> None:
    """The answer says how to give it more."""
    begun = time.monotonic()
    said = bench.refused("execute", command="echo begun; sleep 60", timeout=1.5)
    assert time.monotonic() - begun < 55
    assert "timeout of 1.5 s" in said and "\nbegun\n" in said and "background=true" in said
    assert "at most 600 seconds in the foreground" in bench.refused("execute", command="true", timeout=601)


def test_more_output_than_a_pipe_holds_is_no_hang_and_all_of_it_can_be_read(bench: Bench) -> None:
    """Head and tail are shown; the whole is in a file."""
    said = bench.said("execute", command="seq 1 100000")
    assert said.startswith("exit 0") and said.endswith("\n100000")
    assert len(said) < 10_000
    path = re.findall(r"results/[0-9a-f]+\.txt", said)[0]
    assert bench.rows("read_file", path=path, offset=50_001, limit=2) == ["50000", "50001"]


BAR = r"for ((i = 0; i < 400; i++)); do printf '\r\e[K\e[32m%03d of 400\e[0m' $i; done; printf '\r\e[Kdone\r\n'; "


def test_of_a_progress_bar_its_last_state_is_shown_without_control_sequences(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the output is cut, so no sequence is cut in two and the rest has the room."""
    monkeypatch.setattr(_execute, "MOST_BYTES", 400)
    said = bench.said("execute", command=BAR + r"printf '\e]8;;https://x.test\a%s\e]8;;\a\n' link; seq 5")
    assert said.partition("\n")[2] == "done\r\nlink\n1\n2\n3\n4\n5"
    assert bench.said("execute", command="printf 'no line end'").endswith("\nno line end")
    long = bench.said("execute", command=r"for ((i = 0; i < 300; i++)); do printf '\e[31m%03d\e[0m\n' $i; done")
    assert "\n[... 800 bytes left out ...]\n" in long and "\x1b" not in long and "[0m" not in long


def test_without_a_shell_there_is_no_execute(tmp_path: Path) -> None:
    """A plain filesystem runs nothing."""
    assert "There is no tool 'execute'" in Bench(tmp_path, shell=False).refused("execute", command="true")


# in the background


def test_a_command_in_the_background_goes_on_while_others_run_and_its_output_is_read_by_page(bench: Bench) -> None:
    """Each look goes on where the last one ended."""
    said = bench.said(
        "execute", command="echo one; while ! test -e go; do sleep 0.05; done; echo two; exit 5", background=True
    )
    assert said.startswith("job-1: running")
    job = bench.own.live["job-1"]
    assert isinstance(job, _jobs.Running)
    until(lambda: job.page(0).text == "one\n")
    assert bench.said("execute", handle="job-1", timeout=0).endswith("s\none\n")
    bench.said("execute", command="touch go")
    last = bench.said("execute", handle="job-1", timeout=60)
    assert last.startswith("job-1: exit 5 after") and last.endswith("\ntwo\n")
    assert bench.said("execute", handle="job-1").endswith("(no new output)")
    assert "\none\ntwo\n" in bench.said("execute", handle="job-1", offset=0)


def test_pages_of_a_long_output_are_whole_and_in_order(bench: Bench) -> None:
    """Also where a character lies across the end of a page."""
    text = "".join(f"{number} é東\n" for number in range(8000))
    bench.write("out.txt", text)
    bench.said("execute", command="cat out.txt", background=True)
    job = bench.own.live["job-1"]
    assert isinstance(job, _jobs.Running)
    job.wait(60)
    pages, on = "", True
    while on:
        said = bench.said("execute", handle="job-1")
        assert len(said) <= _jobs.LONGEST_PAGE + 200
        head, _, page = said.partition("\n")
        page, more, _ = page.partition("\n[Go on with offset=")
        assert head.startswith("job-1: exit 0")
        pages, on = pages + page, bool(more)
    assert pages == text


def test_a_page_shows_a_progress_bar_as_it_stands_and_cuts_no_sequence(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small the pages; a sequence that has no end on a page goes with it."""
    monkeypatch.setattr(_jobs, "LONGEST_PAGE", 100)
    bench.said("execute", command=BAR + r"printf '\e]0;%0200d' 7; printf '\a\e[1mend\e[0m\n'", background=True)
    job = bench.own.live["job-1"]
    assert isinstance(job, _jobs.Running)
    job.wait(60)
    page = job.page(0)
    text = [page.text]
    while page.more:
        page = job.page(page.end)
        text.append(page.text)
    assert all(len(part) < 200 and "\x1b" not in part and "[" not in part for part in text)
    assert "".join(text).replace("0", "").endswith("done\r\n7end\n")


def test_a_command_in_the_background_can_be_stopped_with_all_that_it_started(bench: Bench) -> None:
    """Also one that is silent, and its children."""
    bench.said("execute", command="echo $$ > pid; sleep 1000 & sleep 1000; echo never", background=True)
    until(lambda: (bench.tree / "pid").exists())
    assert bench.said("execute", handle="job-1", stop=True).startswith("job-1: stopped after")
    assert "sleep 1000" not in sleeping()


def sleeping() -> str:
    """The command lines of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


def test_closing_the_workbench_ends_what_runs(bench: Bench) -> None:
    """Nothing outlives its conversation."""
    bench.said("execute", command="sleep 1001", background=True)
    bench.own.close()
    assert bench.said("execute", handle="job-1").startswith("job-1: stopped")
    assert "sleep 1001" not in sleeping()


def test_a_command_of_a_process_that_is_gone_is_told_to_be_over(bench: Bench, tmp_path: Path) -> None:
    """It is not run again without the model's word."""
    bench.said("execute", command="echo x >> ran", background=True)
    later = bench.again()
    later.own.state = json.loads(json.dumps(bench.own.state))
    said = later.refused("execute", handle="job-1")
    assert "interrupted" in said and said.endswith("echo x >> ran")
    assert later.said("execute", command="echo", background=True).startswith("job-2")
    later.own.close()


def test_an_unknown_handle_and_a_call_without_a_command_name_what_there_is(bench: Bench) -> None:
    """And both at once are refused."""
    assert "There are: none." in bench.refused("execute", handle="job-1")
    assert "either a command, or the handle" in bench.refused("execute")
    assert "either a command, or the handle" in bench.refused("execute", command="ls", handle="job-1")


def test_the_number_of_commands_in_the_background_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer names those that run; one that ended makes room."""
    monkeypatch.setattr(_execute, "MOST_JOBS", 1)
    bench.said("execute", command="sleep 1002", background=True)
    assert "1 commands run in the background: job-1" in bench.refused("execute", command="sleep 1", background=True)
    bench.said("execute", handle="job-1", stop=True)
    bench.said("execute", command="true", background=True)


AT_ONCE = """import sys, threading
from pathlib import Path
from tests.builtin.tools.benches import Bench
from harness.builtin.tools import _execute as execute
bench = Bench(Path(sys.argv[1]))
def act(): print(bench.said("execute", command="true", background=True).split(":")[0] + "\\n", end="", flush=True)
threads = [threading.Thread(target=act) for _ in range(execute.MOST_JOBS)]
for one in threads: one.start()
for one in threads: one.join()
"""


def test_commands_that_begin_at_the_same_moment_get_handles_of_their_own(tmp_path: Path) -> None:
    """A model may call several tools at once. (In a process of its own: this one has no thread when it forks.)"""
    words = [sys.executable, "-c", AT_ONCE, str(tmp_path)]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == [f"job-{number + 1}" for number in range(_execute.MOST_JOBS)], done


def test_a_folder_that_is_not_there_is_told(bench: Bench) -> None:
    """In the foreground and in the background."""
    for background in (False, True):
        assert "nowhere" in bench.refused("execute", command="ls", working_directory="nowhere", background=background)
