"""Shows a resent prompt as text and as JSON: the diff of the prompts, both sides, the spread."""

from __future__ import annotations

from typing import Any

from harness.base import console, errors
from harness.cli import _tables, _values
from harness.mission import runs
from harness.replay.resends import prompt_swap, resend, side_by_side, state_at_run
from harness.replay.resends.replays import ReplayRecord
from harness.replay.resends.resend import ResendRequest, SampleDetail
from harness.replay.resends.side_by_side import Side, SideComparison, Spread
from harness.run.thinking import NEEDS_HELP
from harness.state.layout import Layout


def order(
    layout: Layout, where: Layout, run_id: str, agent: str, model: str, words: tuple[str, ...], times: int
) -> ResendRequest:
    """The request; raises UsageFault for an unknown swap."""
    swaps = [prompt_swap.asked(word) for word in words]
    return ResendRequest(
        layout=layout, where=where, run=run_id, agent=agent, model=model, swaps=swaps, words=list(words), times=times
    )


def previewed(asked: ResendRequest, as_json: bool) -> int:
    """Show what the swaps change in the prompt; sends nothing."""
    lines = resend.previewed(asked)
    hint = f"Nothing was sent. To send it: {resend.hint(asked.run)}"
    _values.show({"run": asked.run, "prompt_diff": lines}, [*lines, hint], as_json=as_json)
    return errors.DONE


def fired(asked: ResendRequest, as_json: bool) -> int:
    """Send it, and show both sides after each sample, then the spread; returns the exit code."""
    lines = resend.previewed(asked) if asked.swaps else []
    if lines and not as_json:
        console.print_line("\n".join(lines))
    past, about, details = state_at_run.of_run(asked.where, asked.run), None, list[SampleDetail]()
    old, sides = side_by_side.before(asked.layout, past), list["SideComparison"]()
    for one in resend.fire_again(asked):
        if isinstance(one, ReplayRecord):
            about = one
            _say(as_json, _begun(about))
            continue
        details.append(one)
        who = " ".join(filter(None, [asked.agent, one.sample.used.model or asked.model]))
        sides.append(side_by_side.beside(old, side_by_side.after(one, who)))
        if not as_json:
            _print_sides(sides[-1], one, len(details) if asked.times > 1 else 0)
    made = side_by_side.spread([one.sample for one in details])
    where = f".harness/replays/{about.id}/" if about else ""
    if as_json:
        _values.echo(_value(about, lines, sides, details, made))
    elif asked.times > 1:
        _print_spread(made)
    _say(as_json, f"kept in {where}; it does not count in the mission; its cost is in `usage` under replays")
    return _code(details)


def _say(as_json: bool, line: str) -> None:
    if not as_json:
        console.print_line(line)


def _begun(about: ReplayRecord) -> str:
    same = "the same bytes" if about.mounted and not about.swaps else f"{about.prompt_bytes} bytes"
    place = "the clone and the past state are at the paths in the prompt"
    elsewhere = "its Runtime context names the clone, because the original paths cannot be mounted here"
    times = f", {about.times} times" if about.times > 1 else ""
    return f"resends the prompt of {about.run}{times}: {same}; {place if about.mounted else elsewhere}"


def _print_sides(value: SideComparison, detail: SampleDetail, number: int) -> None:
    titles = (f"time {number}" if number else "", "then", "now")
    _tables.print_table(titles, side_by_side.rows(value), fold=titles)
    reason = detail.sample.reason if detail.sample.outcome not in runs.GOOD else ""
    for line in filter(None, [reason, detail.sample.fault, *detail.sample.notes]):
        console.print_line(f"note  {console.sanitise(line)}")
    if value.then.patch is None:
        console.print_line("the original work is no longer in the repository")
    elif not value.work and value.now.patch:
        console.print_line("the work is identical")
    for line in value.work or ([] if value.then.patch else value.replies):
        console.print_line(line)


def _print_spread(value: Spread) -> None:
    outcomes = ", ".join(f"{count}x {name}" for name, count in sorted(value.outcomes.items()))
    console.print_line(f"outcomes       {outcomes}")
    titles = ("", "least", "median", "most")
    shown = {
        "checks passed": value.passed,
        "tokens": value.tokens,
        "cost USD": value.cost_usd,
        "seconds": value.seconds,
    }
    rows = [(name, *([f"{one:.6g}" for one in three] if three else "???")) for name, three in shown.items()]
    _tables.print_table(titles, rows, right=titles[1:])


def _value(
    about: ReplayRecord | None,
    lines: list[str],
    sides: list[SideComparison],
    details: list[SampleDetail],
    spread: Spread,
) -> dict[str, Any]:
    return {
        "replay": about.asdict() if about else None,
        "prompt_diff": lines,
        "then": _side(sides[0].then) if sides else None,
        "now": [{**_side(one.now), "work_diff": one.work, "reply_diff": one.replies} for one in sides],
        "samples": [one.sample.asdict() for one in details],
        "spread": spread.asdict(),
    }


def _side(side: Side) -> dict[str, Any]:
    row = side.asdict()
    return {**row, "patch": None if side.patch is None else side.patch.decode("utf-8", "replace")}


def _code(details: list[SampleDetail]) -> int:
    """0 if all samples ended well; 69 or 75 if the agent could not answer; else 10."""
    ended = [one.sample.outcome for one in details]
    if set(ended) & set(NEEDS_HELP):
        return errors.UNAVAILABLE
    if "limit" in ended:
        return errors.BUSY
    return errors.DONE if all(one in runs.GOOD for one in ended) else errors.NEGATIVE
