"""Output of commands for a person: tables and readable text, colour only on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.state import names
from tests.missions import PROGRAM, House

WORK = {"run": "echo 1 > 1.txt; echo out"}


def on_a_terminal(house: House, *words: str) -> str:
    """The output of a command on a terminal."""
    leader, follower = pty.openpty()
    env = {**house.env, "TERM": "xterm-256color", "COLUMNS": "100"}
    command = [sys.executable, "-P", str(PROGRAM), *words]
    done = subprocess.Popen(command, cwd=house.project, env=env, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    found = b""
    try:
        while chunk := os.read(leader, 65536):
            found += chunk
    except OSError:
        pass  # how Linux reports that the other end is closed
    os.close(leader)
    done.wait()
    return found.decode()


# status


def test_the_status_is_a_table_and_what_is_due(house: House) -> None:
    """Features with tries, proof and last run; then the reason for waiting."""
    house.work(WORK)
    house.harness("note", "hello")
    lines = house.harness("status").out.split("\n")
    assert lines[0].endswith(f" on {house.git('branch', '--show-current')}")
    assert lines[1].split() == ["feature", "status", "tries", "proven", "last", "run", "what"]
    assert lines[2].split() == ["F-001", "validating", "0/3", "0/1", "worker", "ok", "Part", "one"]
    assert "due       NEXT validator F-001: its work is done" in lines
    assert any(line.startswith("manual    VAL-LOOK   (run.sh claim accept VAL-LOOK)") for line in lines)
    assert "notes     1 are not curated yet" in lines
    assert any(re.fullmatch(r"runs      1 in \d+ s, at most 200", line.rstrip()) for line in lines)


def test_the_status_as_json_is_one_object(house: House) -> None:
    """For scripts."""
    value = json.loads(house.harness("status", "--json").out)
    assert [row["id"] for row in value["features"]] == ["F-001", "F-002"]
    assert value["due"] == "NEXT worker F-001"


def test_before_the_plan_the_status_has_no_table(house: House) -> None:
    """No table instead of empty columns."""
    house.lay()
    out = house.harness("status").out
    assert "feature" not in out
    assert "due       NEXT planner: there is no plan yet" in out


LONG = "A title with quite a few words in it that is much longer than any line of eighty columns can be, so it seems"


def test_a_long_title_is_folded_on_a_terminal_and_never_cut(house: House) -> None:
    """In a pipe it stays on its line, and no line ends with blanks."""
    house.lay(house.feature().replace(title=LONG), house.feature("F-002"))
    lines = house.harness("status").out.split("\n")
    assert lines[2].endswith(f"  {LONG}")
    assert [line for line in lines if line != line.rstrip()] == []
    screen = on_a_terminal(house, "status").split("F-002")[0].split("\n")[2:]
    assert max(map(len, screen)) < len(LONG)
    assert " ".join(" ".join(screen).split()).endswith(LONG[-20:])


def test_what_is_no_terminal_gets_whole_lines(house: House) -> None:
    """A receipt's command and a warning can be grepped and pasted, whatever COLUMNS says."""
    command = f"test -f 1.txt && echo '{LONG}' && echo end"
    path = Path(house.layout.path(names.CONTRACT))
    path.write_text(path.read_text().replace("test -f 1.txt", command))
    assert house.harness("check", "VAL-1", COLUMNS="40").out.split("\n")[0].endswith(f" s  {command}")
    house.work({"fail": "auth", "reason": f"{LONG}\nrun.sh doctor agents --try"})
    warning = f"warning   scripted could not answer: auth, {LONG} / run.sh doctor agents --try"
    assert warning in house.harness("status", COLUMNS="40").out.split("\n")


def test_on_a_terminal_a_long_line_goes_on_below_its_words(house: House) -> None:
    """Not at the first column, where it would look like a separate line."""
    house.work({"fail": "auth", "reason": LONG})
    rows = on_a_terminal(house, "status").split("\r\n")
    first = next(number for number, row in enumerate(rows) if row.startswith("warning   scripted"))
    assert re.fullmatch(r" {10}[a-z, ]+so it seems *", rows[first + 1])
    path = Path(house.layout.path(names.CONTRACT))
    path.write_text(path.read_text().replace("test -f 1.txt", f"test -f '{LONG}'\ntrue"))
    receipt = on_a_terminal(house, "check", "VAL-1").split("\r\n")
    assert re.fullmatch(r" {17}\S.*it seems' … *", receipt[1])


def test_there_is_no_colour_in_a_pipe(house: House) -> None:
    """No escape code, whatever the surrounding terminal supports."""
    house.work(WORK)
    for words in (["status"], ["memory", "show"], ["doctor"], ["check"], ["runs", "list"], ["log"]):
        assert "\x1b" not in house.harness(*words, TERM="xterm-256color").out
    assert "\x1b" not in house.program("status", TERM="xterm-256color").out


def test_on_a_terminal_there_is_colour_unless_it_is_unwanted(house: House) -> None:
    """NO_COLOR turns it off."""
    assert "\x1b[" in on_a_terminal(house, "status")
    house.env["NO_COLOR"] = "1"
    assert "\x1b[3" not in on_a_terminal(house, "status")


# one feature, one run


def test_a_feature_is_shown_whole(house: House) -> None:
    """Description, claims with their checks, and its history."""
    house.lay(house.feature().replace(description="All of it."), house.feature("F-002"))
    house.work({"fail": "agent_error", "reason": "it fell over"})
    out = house.harness("feature", "show", "F-001").out
    assert out.startswith("F-001 Part one\ntodo after 1 tries, priority 1\n\nAll of it.\n")
    assert "VAL-1: Part 1 works\n  check 1 of 1:\n    test -f 1.txt\n" in out
    assert "reason: agent_error: it fell over" in out
    assert "(a person decides)" in house.harness("feature", "show", "F-002").out
    assert house.harness("feature", "show", "F-009").code == 64


def test_runs_are_listed_a_line_each_the_newest_last(house: House) -> None:
    """Time, id, outcome, seconds, and the reason, or else the commit; as many as requested."""
    first, second = house.work(WORK), house.work({"say": "nothing"}, feature="F-002")
    lines = house.harness("runs", "list").out.split("\n")[:-1]
    assert [line.split()[1:3] for line in lines] == [[first["run"], "ok"], [second["run"], "no_op"]]
    assert lines[0].endswith(first["commit"][:10])
    assert house.harness("runs", "list", "-n", "1").out.split("\n")[1:-1] == lines[1:]


def test_a_list_of_runs_that_is_cut_says_so(house: House) -> None:
    """The number of missing runs, and the command that shows all; a full list adds nothing."""
    house.work(WORK)
    house.work({"say": "nothing"}, feature="F-002")
    cut = house.harness("runs", "list", "-n", "1").out.split("\n")
    assert cut[0] == "… and 1 older: run.sh runs list -n 2"
    assert len(house.harness("runs", "list", "-n", "2").out.split("\n")[:-1]) == 2
    line = Path(house.layout.path(names.RUN_LOG)).read_bytes().split(b"\n")[0] + b"\n"
    Path(house.layout.path(names.RUN_LOG)).write_bytes(line * 23)
    assert house.harness("runs", "list").out.startswith("… and 3 older: run.sh runs list -n 23\n")
    assert house.harness("runs", "list", "-n", "0").code == 64


@pytest.mark.parametrize("most", ["-1", "0", "99999999999999999999", "many"])
def test_a_number_of_runs_that_cannot_be_shown_is_a_usage_fault(house: House, most: str) -> None:
    """The message names the valid numbers."""
    done = house.harness("runs", "list", "-n", most)
    assert (done.code, "Invalid value for '-n'" in done.err) == (64, True), done


def test_a_run_is_shown_with_its_receipts_and_where_its_files_are(house: House) -> None:
    """Its input and its outcome."""
    run_id = house.work(WORK)["run"]
    out = house.harness("runs", "show", run_id).out
    assert out.startswith(f"{run_id}: worker F-001 at ")
    assert f"commit       {house.head()}\n" in out
    assert out.endswith(f"files        .harness/runs/{run_id}\n")
    assert "seal" not in out
    house.script("validator", {"say": "fine"})
    house.role("validator", "F-001")
    assert re.search(r"green +VAL-1", house.harness("runs", "show", house.result()["run"]).out)
    assert house.harness("runs", "show", "nothing").code == 64


def test_a_run_shows_what_it_used_and_until_when_it_waits(house: House) -> None:
    """Unreported values are not shown; the vendor's own block is in the file."""
    house.work({"usage": {"input": 5, "cost_usd": 0.5}}, {"fail": "limit", "until": 1_000})
    out = house.harness("runs", "show", house.result()["run"]).out
    assert "usage        {'agent': 'scripted', 'input': 5, 'cost_usd': 0.5, 'cost_source': 'reported'}\n" in out
    assert re.search(r"^until        \d{4}-\d\d-\d\dT", out, re.M)
    assert "until" not in house.harness("runs", "show", house.work(WORK)["run"]).out


def test_memory_is_shown_layer_by_layer(house: House) -> None:
    """As on disk; a missing layer is named."""
    house.harness("note", "hello")
    house.identity.mkdir()
    (house.identity / "worker.md").write_text("- [2026-04-24] use make (missions: a, b · 2x)\n")
    raw = house.harness("memory", "show", "raw").out
    assert raw.startswith("== .harness/memory/raw.md\n[")
    assert raw.endswith("] person - - hello\n\n")
    assert "use make" in house.harness("memory", "show", "identity").out
    assert house.harness("memory", "show", "summary").out == "== .harness/memory/summary.md\n(empty)\n\n"
    everything = house.harness("memory", "show").out
    assert [line[3:].rpartition("/")[2] for line in everything.split("\n") if line.startswith("== ")] == [
        *("summary.md", "MEMORY.md", "raw.md", "worker.md"),
    ]


# spending


def cells(out: str) -> dict[str, list[str]]:
    """The rows of all tables by their first cell."""
    rows = [re.split(r" {2,}", line.rstrip()) for line in out.split("\n") if line.strip()]
    return {row[0]: row[1:] for row in rows}


def test_what_was_spent_is_shown_in_tables(house: House) -> None:
    """By role, feature, day and model, then in total; `?` is unknown, and never 0."""
    assert house.harness("usage").out == "Nothing has run yet.\n"
    used = {"model": "m-5", "input": 12_345, "cache_read": 80, "output": 1_999_999, "cost_usd": 0.5}
    house.work({"usage": used})
    rows = cells(house.harness("usage").out)
    row = ["1", "0.50", "12.3k", "80", "?", "2.00M", "?", "1 %"]
    assert [rows[name] for name in ("worker", "F-001", "scripted m-5", "total")] == [row] * 4
    assert rows["role"] == ["runs", "cost USD", "input", "read", "written", "output", "reasoning", "cached"]
    assert max(len(line) for line in house.harness("usage").out.split("\n")) <= 80


def test_a_sum_that_is_not_whole_says_at_least(house: House) -> None:
    """A free agent that reported nothing shows a dash."""
    house.work({"usage": {"input": 1, "cost_usd": 0.5}})
    house.work({"usage": {"input": 1}}, feature="F-002")
    house.script("planner", {"say": "no plan"})
    house.role("planner")
    out = house.harness("usage").out
    rows = cells(out)
    assert (rows["total"][:3], rows["F-002"][:2]) == (["3", ">= 0.50", "2"], ["1", "?"])
    assert rows["planner"] == ["1", *"-------"]
    assert out.split("\n\n")[-1].split("\n") == [
        ">= at least: 1 run not counted, because their cost was not or only partly reported.",
        "?  unknown: not reported.",
        "-  none: no feature, no agent, or a free agent.",
        "",
    ]


def test_what_is_not_known_is_explained(house: House) -> None:
    """If no cost at all is known, no sum is shown as a minimum."""
    house.work({"usage": {"input": 1}})
    assert house.harness("usage").out.split("\n\n")[-1] == (
        "?  unknown: 1 run not counted, because their cost was not or only partly reported.\n"
    )


def test_where_all_is_known_nothing_is_explained(house: House) -> None:
    """The tables are the last output."""
    whole = dict.fromkeys(("input", "cache_read", "cache_write", "output", "reasoning"), 5)
    house.work({"usage": {**whole, "cost_usd": 0.5}})
    assert house.harness("usage").out.split("\n\n")[-1].split()[:2] == ["runs", "cost"]


def test_what_an_agent_says_cannot_steer_the_terminal(house: House) -> None:
    """Neither in the log nor in the view of a run: the screen is not cleared, no line is hidden."""
    spoken = "\x1b[2J\x1b]0;x\x07 bad \r hidden"
    run_id = house.work({"say": spoken}, {"fail": "agent_error", "reason": spoken})["run"]
    for words in (["log"], ["runs", "show", run_id], ["feature", "show", "F-001"]):
        done = house.harness(*words)
        assert done.code == 0
        assert (r"\x1b[2J\x1b]0;x\x07 bad \x0d hidden" in done.out) == (words == ["log"])  # elsewhere it was taken out
        assert ("bad" in done.out, "hidden" in done.out) == (True, True)
        assert not set(done.out) & set("\x1b\x07\r")


HOSTILE = "\x1b[2Jgone\x1b]0;title\x07 \u202eevil\x9b"


def test_what_agents_wrote_cannot_steer_the_terminal_in_any_command(house: House) -> None:
    """Titles, claims, reasons, notes and memory, in a pipe and on a terminal."""
    path = Path(house.layout.path(names.CONTRACT))
    path.write_text(path.read_text().replace("Part 1 works", f"Part 1 works {HOSTILE.replace(chr(27), '')}"))
    blocked = house.feature("F-002").replace(status="blocked", title=HOSTILE)
    blocked.note("2026-04-24T10:05:12Z", "r", "reason", text=HOSTILE)
    house.lay(house.feature().replace(title=HOSTILE, description=HOSTILE), blocked)
    house.work({"say": HOSTILE}, {"fail": "agent_error", "reason": HOSTILE})
    with Path(house.layout.path(names.RAW)).open("a") as raw:
        raw.write(f"[2026-04-24T10:05:12Z] worker F-001 TRICK: {HOSTILE}\n")
    Path(house.layout.path(names.ESCALATION)).write_text(f"---\nkind: stuck\n---\n{HOSTILE}\n")
    house.harness("issue", HOSTILE)
    words = ["status", "feature list", "feature show F-001", "why F-001", "runs list", "runs show F-001", "log"]
    words += ["memory show", "issue list", "escalation", "status --json", "escalation show --json", "check VAL-1"]
    for command in words:
        out = house.harness(*command.split()).out
        assert out
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out), command
    for command in ("status", "why F-001", "escalation"):
        screen = on_a_terminal(house, *command.split())
        assert "gone" in screen
        assert not {"\x07", "\x9b", "\u202e"} & set(screen), command
        assert "\x1b[2J" not in screen


def test_no_command_prints_but_through_what_makes_it_safe() -> None:
    """One function of console; a table and a heading come from cells that are safe."""
    folder = PROGRAM.parent / "cli"
    found = [line.strip() for path in sorted(folder.glob("*.py")) for line in path.read_text().split("\n")]
    echoed = [line for line in found if "click.echo(" in line or "secho(" in line]
    assert [
        line for line in echoed if "console.sanitise(" not in line and "captured" not in line and "text if" not in line
    ] == []


def test_a_list_of_runs_fits_eighty_columns_with_its_reasons(house: House) -> None:
    """The first real fault, cut at the edge."""
    house.work({"fail": "agent_error", "reason": f"The plan is rejected:\n- {LONG}"})
    (line,) = house.harness("runs", "list").out.split("\n")[:-1]
    assert len(line) in (79, 80)
    assert re.search(r" agent_error +\d+\.\d s The plan is rej.*…$", line)
    assert max(map(len, on_a_terminal(house, "runs", "list").split("\r\n"))) == 100


def test_the_newest_run_of_a_feature_is_shown_by_the_features_name(house: House) -> None:
    """Finished or under way."""
    house.work(WORK)
    newest = house.work({"say": "nothing"}, feature="F-002")["run"]
    assert house.harness("runs", "show", "F-002").out == house.harness("runs", "show", newest).out
    assert house.harness("runs", "show", "F-001").out.startswith(f"{house.ran()[0]['run']}: worker F-001")
    assert house.harness("runs", "show", "F-009").code == 64


def test_a_blocked_feature_reads_as_a_sentence(house: House) -> None:
    """Whoever blocked it."""
    house.harness("feature", "block", "F-001", "--reason", "not now")
    assert "Part one  (blocked: not now)" in house.harness("status").out
