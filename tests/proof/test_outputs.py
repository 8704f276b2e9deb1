"""A check's output as plain text, and the trace of a red check's second run: what it says, what it hides, and nothing else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from harness.base import faults
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Contract
from harness.mission.receipts import Receipt
from harness.process.confine import BUBBLEWRAP, LANDLOCK, Confinement, Glass, available
from harness.process.landlock import abi
from harness.proof import check_runs
from harness.proof._outputs import OutputDigest, TracedOutput
from tests.missions import House
from tests.planned import claim

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # of a known form, made up


@pytest.fixture
def place(bare: House) -> CheckEnvironment:
    """Where the checks run: an empty folder."""
    bare.project.mkdir()
    return CheckEnvironment(directory=str(bare.project))


def fired(place: CheckEnvironment, command: str, phase: str = "after") -> Receipt:
    """The receipt of a check as it counts."""
    (found,) = check_runs.fire_each([(claim("VAL-1"), Check(run=command))], phase, place)
    return found


# the output

BAR = r"for ((i = 0; i < 900; i++)); do printf '\r\e[K\e[32m%03d of 900\e[0m' $i; done; printf '\r\e[Kdone\r\n'; "


def test_of_a_progress_bar_the_last_state_is_kept_and_no_control_sequence(place: CheckEnvironment) -> None:
    """Before head and tail are cut, so what is telling is kept; the digest is still that of all bytes."""
    red = fired(place, BAR + r"printf '\e]0;title\a\e[1mwanted 5\e[0m, got 4\b\n'; exit 1")
    assert (red.output, red.fault) == ("done\nwanted 5, got 4\n", "wanted 5, got 4")
    said = "".join(f"\r\x1b[K\x1b[32m{number:03d} of 900\x1b[0m" for number in range(900)) + "\r\x1b[Kdone\r\n"
    said += "\x1b]0;title\x07\x1b[1mwanted 5\x1b[0m, got 4\b\n"
    assert red.output_sha256 == hashlib.sha256(said.encode()).hexdigest()


def test_a_cut_counts_what_is_left_out_of_the_plain_text(place: CheckEnvironment) -> None:
    """And stands between whole text, not within a sequence."""
    red = fired(place, r"for ((i = 0; i < 900; i++)); do printf '\e[31m%09d\e[0m\n' $i; done; false")
    assert "\n[… 4904 bytes left out …]\n" in red.output
    assert "[0m" not in red.output and "31m" not in red.output


@pytest.mark.parametrize("chunk", [64, 1000, 100_000])
def test_a_failed_test_between_many_good_ones_is_kept(chunk: int) -> None:
    """It is the reason, wherever the output arrives in two pieces; one that is only marked as TODO is not."""

    def tap(number: int, ok: str = "ok", more: str = "") -> str:
        return f"# Subtest: t{number}\n{ok} {number} - t{number}{more}\n  ---\n  duration_ms: 0.1\n  ...\n"

    red = "# Error: Cannot find module 'x'\n" + "#     at y\n" * 60 + tap(90, "not ok")
    lines = [
        *map(tap, range(70)),
        tap(70, "not ok", " # TODO"),
        *map(tap, range(71, 90)),
        red,
        *map(tap, range(91, 190)),
    ]
    said = "".join([*lines, "# fail 1\n# duration_ms 1995\n"]).encode()
    output = OutputDigest()
    for at in range(0, len(said), chunk):
        output.take("stdout", said[at : at + chunk])
    assert faults.of_output(output.text()) == "not ok 90 - t90: Error: Cannot find module 'x'"
    assert len(output.text().encode()) < 6400


def test_the_setup_says_what_stayed_on_the_terminal(place: CheckEnvironment) -> None:
    """As a check does."""
    contract = Contract(setup=BAR + r"printf '\e[31mno network\e[0m\n'; exit 3", claims=[], services=[])
    assert check_runs.setup_fault(contract, place) == "setup ended with exit 3:\ndone\nno network\n"


# what it says


def test_a_red_check_says_which_commands_it_ran_with_their_values(place: CheckEnvironment) -> None:
    """One line each; a number is the status of the command before, and the fault is the last that came after a good one."""
    red = fired(place, 'out=$(echo h-e-l-l-o); test "$out" = hello-world')
    assert (red.exit, red.output) == (1, "")
    assert red.trace == "+ echo h-e-l-l-o\n+ out=h-e-l-l-o\n+ test h-e-l-l-o = hello-world"
    assert red.fault == "test h-e-l-l-o = hello-world"
    handled = fired(place, "trap 'rm -f x' EXIT; out=$(printf 'a\\nb'); [[ $out == c ]] || exit 3")
    assert handled.trace.split("\n")[-3:] == [r"+ [[ a\nb == c ]]", "+1 exit 3", "+3 rm -f x"]
    assert handled.fault == r"[[ a\nb == c ]]"


def test_an_output_says_more_than_a_trace(place: CheckEnvironment) -> None:
    """The first run's output and exit are the receipt's, also where the second fails in another way."""
    red = fired(place, "if test -e x; then exit 4; fi; touch x; echo it is 5; exit 3")
    assert (red.exit, red.output, red.fault) == (3, "it is 5\n", "it is 5")
    assert red.trace == "+ test -e x\n+ exit 4"


def test_only_a_check_that_is_red_twice_has_a_trace(place: CheckEnvironment) -> None:
    """Neither a green one, nor a flaky one, nor one that ran once."""
    assert fired(place, "true").trace == ""
    assert fired(place, "false", "before").trace == ""
    flaky = fired(place, "echo out; echo err >&2; test -e x || { touch x; false; }")
    assert (flaky.verdict, flaky.trace, flaky.output) == ("green (flaky)", "", "out\nerr\n")


def test_the_last_two_kilobytes_of_a_trace_stay(place: CheckEnvironment) -> None:
    """A loop of any length ends, since the trace is read while it runs; a long line is cut."""
    red = fired(place, "for ((i = 0; i < 10000; i++)); do :; done; test $(printf '%0300d' 7) = 8")
    lines = red.trace.split("\n")
    assert len(red.trace) <= 2048
    assert lines[-3:] == ["+ (( i < 10000 ))", "+ printf %0300d 7", f"+ test {'0' * 192}…"]


def test_of_a_trace_without_an_end_little_is_kept() -> None:
    """Also of one command without an end."""
    output = TracedOutput({})
    for chunk in (b"x" * 65536, b"\x1e+0 : " * 8192):
        for _ in range(40):
            output.take("stderr", chunk)
            assert sum(map(len, output.commands)) < 100_000
    assert output.trace().startswith("+ :\n+ :")


# what it hides


@pytest.mark.parametrize("value", ["s3cret-value", "it's \\ se\tcret\n'of' ñandús", "x" * 3000, "sécr€t"])
@pytest.mark.parametrize("command", ['test "$MINE" = x', '[[ x == "$MINE" ]]', 'LC_ALL=C; test "$MINE" = x'])
def test_values_of_variables_that_are_passed_are_their_names(
    place: CheckEnvironment, monkeypatch: pytest.MonkeyPatch, value: str, command: str
) -> None:
    """However bash quotes them, and however long they are; the check itself has them."""
    monkeypatch.setenv("MINE", value)
    red = fired(place.replace(passed=["MINE", "OTHER"]), f'test -n "$MINE"; {command}')
    assert "[MINE]" in red.trace and "test -n" in red.trace
    for shown in (red.trace, red.fault):
        left = shown.replace("MINE", "")
        assert not any(part in left for part in ("cret", "s\\e", "of", "dú", "xxx", "\\303", "\\e\\t")), red.trace


def test_a_secret_of_a_known_form_is_masked_as_in_output(place: CheckEnvironment) -> None:
    """Whoever brought it."""
    red = fired(place, f"key=$(printf '%s' {KEY[:9]} {KEY[9:]}); test \"$key\" = x")
    assert KEY not in red.trace
    assert red.trace.endswith("+ test [masked: github-token] = x")


SPY = """
for fd in /proc/self/fd/*; do
    number=${fd##*/}
    test "$number" -gt 2 && test "$number" != 255 && test -e "$fd" || continue
    (exec 9<"$fd") 2>/dev/null && test ! -f "$fd" && echo "$number can be opened"
    timeout 5 cat <&$number 2>/dev/null || echo "$number waits for more"
done
grep -rs 'is [8]' "$TMPDIR" .
true
"""


def test_no_program_turns_green_by_what_the_trace_says(place: CheckEnvironment) -> None:
    """It stands in no file that a program finds, and no descriptor gives it back."""
    Path(place.directory, "spy").write_text(SPY)
    red = fired(place, 'want="is $((7 + 1))"; out=$(bash spy); test -n "$out"')
    assert red.trace == "+ want='is 8'\n+ bash spy\n+ out=\n+ test -n ''"


TELLS = [
    'test -n "${BASH_XTRACEFD:-}"',
    "[[ $- == *x* ]]",
    "cat <&243",
    'export SHELLOPTS; test -n "$(bash -c true 2>&1)"',
]


@pytest.mark.parametrize("command", TELLS)
def test_a_check_that_is_green_only_while_it_is_traced_is_red(place: CheckEnvironment, command: str) -> None:
    """It can tell that it is traced, so a green traced run decides nothing."""
    found = fired(place, command)
    assert (found.green, found.flaky, found.trace) == (False, True, "")


# what it leaves alone


SAME = [
    "echo out; echo err >&2; echo out; exit 3",
    "exec sh -c 'echo a; echo b >&2; exit 4'",
    "exec 3>&1 1>log 10>&2; echo a; echo b >&3; echo c >&10; cat log >&3; false",
    "exec 2>&-; echo a; cat; false",
    "(set -x; PS4='! '; true) >log 2>&1; set +x; echo $LINENO; false",
    "\n# a comment\ncat <<'END'\na\nEND\nno-such-program; false",
    "env | grep -ci 'xtrace\\|ps4\\|shellopts\\|bashopts' || bash -c 'echo $-$PS4${BASH_XTRACEFD-}'; printf 'a\\036b'; false",
    "f() { local x=1; return 5; }; f",
    "kill -9 $$",
    "read -r x || echo none; sleep 60",
]


@pytest.mark.parametrize("command", SAME)
def test_a_traced_check_prints_and_ends_as_ever(place: CheckEnvironment, command: str) -> None:
    """Its shell, what that starts, and its descriptors."""
    known = place.replace(seconds=0.5 if "sleep" in command else 60.0)
    plain, traced = (check_runs.fire(Check(run=command), claim("V"), "after", known, one) for one in (False, True))
    assert (traced.exit, traced.output) == (plain.exit, plain.output)
    assert (plain.trace, traced.trace != "") == ("", True)


def test_a_script_that_a_check_starts_speaks_for_itself(place: CheckEnvironment) -> None:
    """Its commands are neither in the trace nor in the output."""
    Path(place.directory, "script").write_text("true inside\nfalse\n")
    red = check_runs.fire(Check(run="bash script"), claim("V"), "after", place, traced=True)
    assert (red.exit, red.trace, red.output) == (1, "+ bash script", "")


def test_who_holds_or_floods_the_trace_holds_up_nothing(place: CheckEnvironment) -> None:
    """A program in the background, one in its own session, and one that writes to the trace without an end."""
    flood = "import os\nwhile True: os.write(243, b'+ forged ' * 1000)"
    Path(place.directory, "flood.py").write_text(flood)
    red = fired(place, "sleep 600 & setsid sleep 600 & (python3 flood.py 2>/dev/null &); sleep 0.5; test 1 = 2")
    assert (red.verdict, len(red.trace) <= 2048) == ("red (exit 1)", True)
    assert "+ test 1 = 2" in red.trace


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("tier", [BUBBLEWRAP, LANDLOCK])
def test_a_confined_check_is_traced_too(place: CheckEnvironment, tier: str, plain: bool) -> None:
    """By either tier, and in a plain environment."""
    if available() != BUBBLEWRAP if tier == BUBBLEWRAP else not abi():
        pytest.skip(f"{tier} cannot be used here")
    red = fired(place.replace(confinement=Confinement(glass=Glass(), tier=tier), plain=plain), "test 1 = 2")
    assert (red.verdict, red.trace) == ("red (exit 1)", "+ test 1 = 2")
