"""The text of an escalation: why the mission stops, what is red, and a command for each way to continue."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from harness.base import console, faults
from harness.base.record import Record
from harness.decision import checkpoints, rules, views
from harness.mission import contract, features, runs
from harness.mission.contract import Claim
from harness.mission.features import Feature
from harness.mission.receipts import Receipt
from harness.mission.runs import RunResult
from harness.state import names
from harness.state.layout import Layout, command
from harness.state.state import State

WHY = {
    "stuck": "No feature can be worked on any more, and not all have passed.",
    "stalled": "Features are set aside, or runs change nothing, one after another, and no claim was proven in between.",
    "plan": "Three runs in a row brought no acceptable plan.",
    "setup": "The contract's setup is red.",
    "unlanded": "The work is done and proven, and cannot be put on the mission's branch.",
    rules.PROOF: "All checks are green, and the following is not proven. The mission is DONE when a person accepts it.",
}
UNKNOWN = "The mission cannot go on by itself."
REASON_CHARS = 200
MAX_FEATURES = 5  # shown with their red checks
MAX_COMMAND_LINES = 12  # of a command
LAST_LINES = 15  # of an output
INDENT = "    "
DROPPED_CLAIM = "not in the contract any more"


class Escalation(Record):
    """An escalation for a person: its kind ("" without one), and its text."""

    kind: str
    text: str


def shown(layout: Layout, now: int) -> Escalation:
    """The open escalation on disk, or the due one if the file is gone; else a waiting checkpoint."""
    text = State(layout).text(names.ESCALATION)
    if text is not None:
        return Escalation(kind=views.escalation_kind(layout), text=text)
    view = views.gather(layout)
    decision = rules.decide(view, now)
    if decision.word == "CHECKPOINT":
        asks = [ask for ask in view.asks.all if ask.name == decision.what]
        return Escalation(kind="checkpoint", text="\n\n".join(map(checkpoints.shown, asks)) + "\n")
    if decision.word != "ESCALATE":
        return Escalation(kind="", text="")
    return Escalation(kind=decision.what, text=render(layout, view, decision.what))


def render(layout: Layout, view: rules.View, kind: str) -> str:
    """The text of escalation.md for every kind but setup."""
    known = {claim.id: claim for claim in contract.load(layout).claims}
    waiting = [feature for feature in view.features if feature.status != "passed"]
    red = {feature.id: _red(layout, feature) for feature in waiting[:MAX_FEATURES]}
    lines = ["---", f"kind: {kind}", "---", WHY.get(kind, UNKNOWN), ""]
    lines += [view.unlanded, ""] if view.unlanded else []
    lines += [said, ""] if kind == "stalled" and (said := _common(view)) else []
    lines += [f"- {doubt.text}" for doubt in view.doubts]
    for feature in waiting:
        lines += [_feature_line(feature), *_evidence(known, feature, red.get(feature.id, []))]
        last = runs.last(layout, role=view.roles["commits"], feature=feature.id) if feature.id in red else None
        lines += [f"  {line}" for line in last.ignored] if last else []
    found = list(views.since_proven(layout, max(view.totals.since_green, len(view.newest))))
    lines += [_run_line(result) for result in found]
    if kind == "plan" and found:
        lines += ["", "The newest in full:", "", *_indented(found[0].reason, MAX_COMMAND_LINES + LAST_LINES)]
    ways = [(doubt.remedy, doubt.outcome) for doubt in view.doubts] or _ways(kind, found, waiting, red)
    return _ended(lines, [*ways, *_going_back(layout, kind)])


def of_setup(run_id: str, at: str, setup: str, fault: str, *, in_force: bool) -> str:
    """The text of escalation.md for a red setup at a commit: the contract's (`in_force`), or that of a refused plan."""
    head, *output = fault.rstrip("\n").split("\n")
    cut = ["[…]"] if len(output) > LAST_LINES else []
    lines = ["---", "kind: setup", f"run: {run_id}", "---", f"The setup is red at {at[:10]}.", ""]
    lines += ["It is this command:", "", *_indented(setup, MAX_COMMAND_LINES), ""] if setup else []
    lines += [head, *cut, *output[-LAST_LINES:]]
    ways = [(command("check"), "run it again, with every check; nothing counts")] if in_force else []
    ways += [(command(f"runs show {run_id}"), "the run that found it red")]
    return _ended(lines, ways)


def first_fault(view: rules.View) -> str:
    """The common fault of features that were set aside, else the first real fault of the newest run with one, or ""."""
    blamed = (one for one in view.newest if one.outcome not in runs.FREE_OF_BLAME and one.role != view.roles["curates"])
    said = (faults.first(one.reason, REASON_CHARS) for one in blamed)
    return _common(view) or next(filter(None, said), "")


def _common(view: rules.View) -> str:
    """The common fault of several features that were set aside, with their names; "" without one."""
    fault = rules.common_fault(view)
    alike = ", ".join(sorted(name for name, said in view.set_aside.items() if said == fault))
    return f"the same in {alike}: {faults.first(fault, REASON_CHARS)}" if fault else ""


def _feature_line(feature: Feature) -> str:
    last = next((note["text"] for note in reversed(feature.notes) if note.get("text")), feature.title)
    tries = "1 try" if feature.attempts == 1 else f"{feature.attempts} tries"
    return f"- {feature.id} {feature.status} after {tries}: {faults.first(last, REASON_CHARS)}"


def _red(layout: Layout, feature: Feature) -> list[Receipt]:
    """The red receipts of the newest run that judged the feature, one per claim."""
    found: dict[str, Receipt] = {}
    for receipt in runs.last_receipts(layout, feature.id, feature.claims):
        if not receipt.green:
            found.setdefault(receipt.claim, receipt)
    return list(found.values())


def _evidence(known: dict[str, Claim], feature: Feature, red: list[Receipt]) -> Iterator[str]:
    """The red checks of a feature: claim, check, and the end of its output; else its claims."""
    if not red and (claims := [known[name] for name in feature.claims if name in known]):
        yield f"  It is to bring {'; '.join(f'{claim.id}: {claim.text}' for claim in claims)}"
    for receipt in red:
        yield f"  {receipt.claim}: {known[receipt.claim].text if receipt.claim in known else DROPPED_CLAIM}"
        yield f"  {receipt.verdict} in run {receipt.by}: {faults.cut(receipt.fault, REASON_CHARS)}"
        yield from (f"  note: {note}" for note in receipt.notes)
        yield "  its check:"
        yield from _indented(receipt.command, MAX_COMMAND_LINES)
        if receipt.output.strip():
            yield "  the end of its output:"
            yield from _indented("\n".join(last_lines(receipt.output)), LAST_LINES)


def last_lines(output: str, most: int = LAST_LINES) -> list[str]:
    """The last `most` lines of an output, each truncated to REASON_CHARS."""
    return [faults.cut(line, REASON_CHARS) for line in output.rstrip().split("\n")[-most:]]


def _indented(text: str, most: int) -> list[str]:
    """The first lines of a text, indented, and the number of omitted ones."""
    lines = text.strip("\n").split("\n")
    more = [f"{INDENT}… and {len(lines) - most} more lines"] if len(lines) > most else []
    return [f"{INDENT}{line}".rstrip() for line in lines[:most]] + more


def _run_line(result: RunResult) -> str:
    what = " ".join(part for part in (result.role, result.feature, result.said) if part)
    return f"- run {result.run}: {what}  {faults.first(result.reason, REASON_CHARS)}".rstrip()


def _ways(
    kind: str, found: list[RunResult], waiting: list[Feature], red: dict[str, list[Receipt]]
) -> list[tuple[str, str]]:
    """(command, its effect) of each way to continue, except the answer."""
    if kind == "unlanded":
        return [(command("status"), "what is on the branch, and what is not")]
    if kind == "plan":
        newest = found[0].run if found else ""
        return [
            (command(f"runs show {newest}"), "what its checks said"),
            (command(f"log {newest}"), "what its agent wrote and did"),
        ] * bool(newest) + [("edit SPEC.md", "a part that cannot be planned; then answer")]
    made = []
    for feature in waiting[:MAX_FEATURES]:
        if feature.status in features.TRANSITIONS["retry"]:
            made.append((command(f"feature retry {feature.id}"), "try it again, with all its tries"))
        for receipt in red.get(feature.id, []):
            made.append((command(f"why {receipt.claim}"), "its checks, receipts and red output"))
            made.append((command(f"claim set {receipt.claim} --check 'COMMAND'"), "if its check is wrong: another one"))
    return list(dict.fromkeys(made))


def _going_back(layout: Layout, kind: str) -> list[tuple[str, str]]:
    """The way back to the state after the newest run that proved a claim, or planned more than one feature."""
    if kind not in ("stuck", "stalled"):
        return []
    good = (one.run for one in runs.finished(layout) if one.newly_green or (one.accepted and not one.feature))
    back = "go back to the state after the last run that brought the mission on"
    return [(command(f"snapshot restore {run}"), back) for run in islice(good, 1)]


def _commands(ways: list[tuple[str, str]]) -> str:
    longest = max(len(words) for words, _ in ways)
    return "\n".join(f"{INDENT}{words:<{longest}}  # {what}" for words, what in ways)


def _ended(lines: list[str], ways: list[tuple[str, str]]) -> str:
    """The sanitised text, with the ways to continue and the answer at its end."""
    rows = ["", "Ways on:", "", _commands(ways)] if ways else []
    answer = f'Answer with: {command("escalation answer")} "what to do"'
    return console.sanitise("\n".join([*lines, *rows, "", answer, ""]))
