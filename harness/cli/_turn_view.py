"""Shows one request of the built-in agent as text and as JSON: its parts, its answer, and its repetition."""

from __future__ import annotations

from typing import Any

from harness.base import console, errors
from harness.builtin import turn_replay
from harness.builtin.turn_replay import RebuiltRequest, RecordedTurn
from harness.cli import _tables, _values
from harness.state.layout import Layout
from harness.workplace import run_detection


def turn(layout: Layout, where: Layout, run_id: str, number: int, task: str, *, sends: bool, as_json: bool) -> int:
    """Show a request, and resend it if requested; returns 65 if its bytes differ from those sent."""
    if sends:
        run_detection.refuse(layout, "replay --agent")
    known = turn_replay.seen(where, run_id, number, task)
    made = turn_replay.again(layout, where, known, send=sends) if sends or turn_replay.comparable() else None
    return shown(known, made, as_json=as_json)


def shown(known: RecordedTurn, made: RebuiltRequest | None, *, as_json: bool) -> int:
    """Show a request and its repetition; returns 65 if its bytes differ from those sent."""
    if as_json:
        _values.echo({**_value(known), "again": made.asdict() if made else None})
    else:
        _print(known, made)
    if made and made.fault:
        return errors.BUSY if made.fault[0] == "limit" else errors.UNAVAILABLE
    return errors.DONE if made is None or made.equal else errors.BROKEN


def _value(known: RecordedTurn) -> dict[str, Any]:
    return {**known.asdict(), "cacheable": known.cacheable, "sections": [one.asdict() for one in known.sections]}


def _print(known: RecordedTurn, made: RebuiltRequest | None) -> None:
    model = known.parameters["model"]
    console.print_line(
        f"{f'{known.run} {known.task}'.strip()}: turn {known.turn} of {known.turns}, {known.at}, {model}, {known.bytes} bytes"
    )
    rows = [(str(one.bytes), one.what, "new" * one.new, one.digest[:10], one.first) for one in known.sections]
    _tables.print_table(("bytes", "part", "", "digest", "begins"), rows, right=("bytes",), fold=("bytes",))
    whole = sum(one.bytes for one in known.sections)
    console.print_line(
        f"{known.cacheable} of these {whole} bytes are equal to the previous request, so a prompt cache can serve them"
    )
    _print_answer("answer", known.answer)
    if made is None:
        console.print_line("not compared: the packages of the built-in agent are not installed here")
        return
    same = f"equal to the sent request, byte for byte ({known.digest[:10]})"
    other = f"differs from the sent request: {made.bytes} bytes ({made.digest[:10]}) by {made.by}; sent by {known.by}"
    console.print_line(f"rebuilt: {made.bytes} bytes, {same}" if made.equal else f"rebuilt: {other}")
    if made.fault:
        console.print_line(f"now: {made.fault[0]}: {made.fault[1]}")
    if made.answer:
        calls = [f"{call['name']}({call['arguments']})" for call in made.answer["calls"]]
        _print_answer("now", {**made.answer, "said": [made.answer["text"], *calls]})


def _print_answer(head: str, answer: dict[str, Any] | None) -> None:
    if answer is None:
        console.print_line(f"{head}: none; the run ended before it")
        return
    counts = ", ".join(
        f"{answer['usage'][name]} {name}" for name in ("input", "cache_read", "output") if name in answer["usage"]
    )
    console.print_line(f"{head}: {answer['seconds']} s, {counts or 'no tokens reported'}")
    for text in filter(None, answer["said"]):
        console.print_line("  " + "\n  ".join(text.split("\n")))
