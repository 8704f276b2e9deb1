"""The status, and the ten lines at the end of run.sh, as plain values and uncoloured text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harness.base import clock, console, encoding, faults
from harness.commands import curations
from harness.decision import checkpoints, doubts, escalations, gaps, overview, rules
from harness.decision.rules import View
from harness.git import refs, repository
from harness.git.landing import HELD
from harness.git.repository import BRANCHES
from harness.mission import contract_log, features, issues, lease, mission, runs
from harness.mission.features import Feature
from harness.process.confine import LANDLOCK
from harness.proof import index
from harness.proof.index import ClaimStatus, Proofs
from harness.run import workspace_inputs
from harness.run.notice import hooks
from harness.state import names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import workplace

ENDING_LINES = 10
SECRETS_SHOWN = 3


def status(layout: Layout) -> dict[str, Any]:
    """The mission at a glance, as plain JSON: for the keys see docs/contract.md."""
    now, made = overview.gather(layout), mission.load(layout)
    view, proven = now.view, now.proofs.proven
    passed = f"{len(features.passed(now.features))} of {len(now.features)} features passed"
    last = _last_outcomes(layout, {feature.id for feature in view.features})
    return {
        "mission": made.id,
        "branch": made.branch,
        "due": "ARCHIVED" if layout.archived else now.decision.line,
        "why": passed if layout.archived else why(view, now.decision),
        "under_way": [one.run + f" on {one.machine}" * bool(one.machine) for one in lease.alive(layout)],
        "features": [_row(one, proven, last.get(one.id, "")) for one in now.features],
        "claims": [one.asdict() for one in now.proofs.statuses],
        "proof": dict(_proof_lines(now.proofs)),
        "issues": [issue.asdict() for issue in issues.load(layout) if issue.state != "closed"],
        "uncurated": overview.uncurated(layout),
        "gated": curations.gated(layout),
        "warnings": [
            *(cap.words for cap in rules.near(view.limits, view.totals)),
            *_trouble(layout, view.newest),
            *(doubt.text for doubt in view.doubts),
            *_secrets(layout),
            *curations.filled(layout),
            *hooks.failing(layout),
            *workspace_inputs.words(workspace_inputs.waiting(layout)),
        ],
        "confined": view.newest[0].confined if view.newest else "",
        "totals": view.totals.asdict(),
        "limits": view.limits.asdict(),
    }


def _trouble(layout: Layout, newest: list[runs.RunResult]) -> list[str]:
    """Warnings about the last run: not confined, not on the branch, or the fault that stopped it."""
    last = next(iter(newest), None)
    found = [line for line in [_unconfined(newest[:1]), _behind(layout, newest)] if line]
    if last is None or last.outcome not in ("auth", "config"):
        return found
    return [*found, f"{last.agent} could not answer: {last.outcome}, {' / '.join(last.reason.split(chr(10)))}"]


def _behind(layout: Layout, newest: list[runs.RunResult]) -> str:
    """Why the branch or a person's folder was behind at the last run; "" if it no longer is."""
    found = newest[0].unlanded if newest else ""
    return found if found and (workplace.is_held(layout) or not workplace.landed(layout)) else ""


def _secrets(layout: Layout) -> list[str]:
    """Secrets, or possible ones, that runs committed or would have committed, newest first."""
    results = (one for one, _ in map(runs.parse, _with(layout, b'"secrets":["')) if one)
    found = [f"{line} (run {one.run})" for one in results for line in one.secrets]
    more = [f"and {len(found) - SECRETS_SHOWN} more of these: {command('runs show')} RUN"]
    return found[:SECRETS_SHOWN] + (more if len(found) > SECRETS_SHOWN else [])


def _with(layout: Layout, mark: bytes) -> Iterator[bytes]:
    """The lines of the run log that contain this, newest first, without a look at the others."""
    data = State(layout).data(names.RUN_LOG) or b""
    at = data.rfind(mark)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        yield data[start : data.find(b"\n", at)]
        at = data.rfind(mark, 0, start)


def _unconfined(results: Iterable[runs.RunResult]) -> str:
    """The number of these runs that were not or only partly confined; "" if all were."""
    tiers = [result.confined for result in results]
    weak = [("not confined", tiers.count("")), ("on the second tier of confinement", tiers.count(LANDLOCK))]
    found = ", ".join(f"{count} of {len(tiers)} runs {what}" for what, count in weak if count)
    return f"{found} (docs/threat-model.md)" if found else ""


def _row(feature: Feature, proven: set[str], last: str) -> dict[str, Any]:
    return {
        "id": feature.id,
        "title": feature.title,
        "status": feature.status,
        "attempts": feature.attempts,
        "tries": feature.tries,
        "claims": len(feature.claims),
        "proven": sum(claim in proven for claim in feature.claims),
        "depends_on": feature.depends_on,
        "last": last,
        "waits": _waits(feature),
    }


def _last_outcomes(layout: Layout, wanted: set[str]) -> dict[str, str]:
    """{feature: role and outcome of its newest run}; reads the run log backwards, only as far as needed."""
    found: dict[str, str] = {}
    for result in runs.finished(layout):
        if result.feature in wanted:
            found.setdefault(result.feature, f"{result.role} {result.verdict or result.outcome}")
        if len(found) == len(wanted):
            break
    return found


def _waits(feature: Feature) -> str:
    """What a blocked feature waits for: the features or claims in its newest note, and the text; "" for any other."""
    note = overview.waits(feature)
    if note is None:
        return ""
    names = features.named(note)
    return f"{', '.join(names)}: {note['text']}" if names else str(note["text"])


REASONS = {
    "STOPPED": "a person asked to stop; to continue: {resume}",
    "PAUSED": "a person asked to pause; to continue: {resume}",
    "CHECKPOINT": "a person must look: {list}",
    "TIME": "the time limit of --for is reached; the next start continues",
    "DONE": "all features pass, also in a fresh clone",
}


def why(view: rules.View, decision: rules.Decision) -> str:
    """The reason of a decision, in a sentence."""
    if decision.word == "WAIT" and decision.what == "0":
        return f"everything due waits {decision.reason}"
    if decision.word == "WAIT":
        return f"rate limited by the agent's vendor until {clock.stamp(int(decision.what))}"
    if decision.word != "NEXT":
        return _halted(view, decision.word)
    if decision.what == view.roles["plans"]:
        return "there is no plan yet" if not view.features else "the spec, an issue or a feature asks for it"
    if decision.what == view.roles["curates"]:
        return f"at least {min(view.uncurated, view.curate_after)} notes wait"
    if decision.what == view.roles["judges"]:
        return "its work is done" if decision.feature else "all features passed; a fresh clone is not tested yet"
    return "its turn has come"


def _halted(view: rules.View, word: str) -> str:
    """Why nothing starts, in a sentence: the cap and its setting, or the question to a person with the first real fault."""
    if word == "BUDGET":
        cap = rules.exhausted(view)[:1]
        raising = "raise {} under [limits] in .harness/config.toml"
        return "; ".join(f"the cap is reached, {one.words}: {raising.format(one.key)}" for one in cap)
    if word != "ESCALATE":
        ways = {"resume": command("resume"), "list": command("checkpoint list")}
        return REASONS.get(word, "a person is needed").format(**ways)
    fault = escalations.first_fault(view)
    asks = f"a person is needed: read .harness/escalation.md, or {command('escalation')}"
    return f"{asks}. The newest fault: {fault}" if fault else asks


def readable(layout: Layout, line: str, watched: bool) -> list[str]:
    """The line of a decision for a person: for a WAIT the local time, the duration, the whole reason, and how to end it.
    `watched`: a person at a terminal may stop it."""
    if line.startswith("WAIT 0 "):
        return [f"WAIT {line[7:]}: under way"]
    last = next(runs.finished(layout), None)
    if last is None or line.split(" ")[:2] != ["WAIT", str(last.until)]:
        return [line]
    now = clock.now()
    when = f"until {clock.local(last.until, now)} (in {clock.duration(last.until - now)})"
    stop = " Ctrl-C is safe: the next start continues from here." if watched else ""
    return [
        f"WAIT {when} {faults.first(last.reason)}".rstrip(),
        f"Another agent for the {last.role} in {layout.shown(names.CONFIG)} ends the wait.{stop}",
    ]


def _proof_lines(proofs: Proofs) -> list[tuple[str, str]]:
    """(word, claims): proven, guarded, unproven, flaky, weakened, changed, signs of reward hacking, manual, each with the
    command for details, those accepted by a person or by `[proof] guards`, and the differences of the contract to its log."""
    known, log, found = proofs.contract, proofs.log, proofs.statuses
    dropped = sorted(contract_log.weakened(log) - {claim.id for claim in known.claims})
    moved = [*_marked(found, "changed"), *sorted(contract_log.changed(log) - {claim.id for claim in known.claims})]
    edited = doubts.edited(known, log)
    flaky, weakened = _marked(found, "flaky"), _marked(found, "weakened") + [f"{name} (dropped)" for name in dropped]
    checks = sum(len(claim.checks) for claim, one in zip(known.claims, found, strict=True) if one.word == "proven")
    proven, open_ = [one for one in found if one.word == index.PROVEN], [one for one in found if not one.counts]
    words = {word: [one.claim for one in [*proven, *open_] if one.word == word] for word in index.WORDS}
    accepted = [name for name in _marked(found, index.ACCEPTED) if name not in words["proven"]]
    guards = _marked(found, index.GUARDS)
    rows = [
        ("proven", f"{len(words['proven'])} of {len(found)} claims, by {checks} checks"),
        ("guarded", _named(words["guarded"], "claim accept")),
        ("unproven", _named(words["unproven"], "why")),
        ("flaky", _named(flaky, "why")),
        ("weakened", _named(weakened, "why")),
        ("changed", f"{encoding.few(moved)}   ({command('why')} {moved[0].split(' ')[-1]})" if moved else ""),
        ("signs", _named(_marked(found, "signs"), "why")),
        ("manual", _named(words["manual"], "claim accept")),
        ("accepted", f"{encoding.few(accepted)}   (by a person)" if accepted else ""),
        ("guards", f"{encoding.few(guards)}   (accepted without proof, by [proof] guards)" if guards else ""),
        ("contract", f"differs from its log: {encoding.few(edited)}   ({command('claim adopt')})" if edited else ""),
    ]
    return [row for row in rows if row[1]]


def _marked(found: list[ClaimStatus], mark: str) -> list[str]:
    return [one.claim for one in found if mark in one.marks]


def _named(claims: list[str], words: str) -> str:
    return f"{encoding.few(claims)}   ({command(words)} {claims[0].split(' ')[0]})" if claims else ""


def last_words(layout: Layout, word: str) -> Iterator[str]:
    """The last lines of run.sh, then a warning for each hook that does not receive this decision."""
    yield from ending(layout, word)
    yield from (console.sanitise(f"warning   {line}") for line in deliver_ending(layout, word))


def deliver_ending(layout: Layout, word: str) -> list[str]:
    """Give a person's programs this decision, with which run.sh ends or a schedule does not start; a line per failed hook."""
    return hooks.at_ending(layout, word)


def ending(layout: Layout, word: str) -> list[str]:
    """At most ten lines: proven and unproven claims, commits, cost, the branch to merge, the next command."""
    now, made = overview.gather(layout), mission.load(layout)
    found, totals = now.features, now.view.totals
    head = workplace.position(layout).head
    commits = len(repository.log_lines(layout.folders.top, made.base_commit, head)) if head else 0
    proof = [f"{name:<9} {text}" for name, text in _proof_lines(now.proofs)]
    if word == "DONE" and (weak := _unconfined(runs.finished(layout))):
        proof.append(f"warning   {weak}")
    if word == "DONE":
        proof += [f"warning   {line}" for line in filter(None, [_behind(layout, now.view.newest)])]
        proof += [f"warning   {doubt.text}" for doubt in doubts.changed(layout)]
        proof += [f"warning   {line}" for line in gaps.find(State(layout).text(names.SPEC) or "", found)]
    if word == "DONE" and (secrets := _secrets(layout)):
        more = f", and {len(secrets) - 1} more: {command('status')}" if len(secrets) > 1 else ""
        proof.append(f"warning   {secrets[0]}{more}")
    open_ = [f"{issue.id} {issue.severity}" for issue in issues.load(layout) if issue.state != "closed"]
    counts = [
        *(f"warning   {cap.words}" for cap in rules.near(now.view.limits, totals)),
        f"issues    {', '.join(open_[:8]) or 'none'}",
        f"runs      {totals.runs} in {totals.seconds:.0f} s, cost {cost(totals.cost_usd, totals.uncounted)}",
        f"commits   {commits} on {made.branch}, now at {head[:10]}",
    ]
    last = _merge(layout, made.branch) if word == "DONE" else _remedy(layout, now.view, word)
    proof = _squeezed(proof, ENDING_LINES - 1 - len(last))
    room = ENDING_LINES - 1 - len(proof) - len(last)  # the proof is more important than the counts
    kept = counts[max(len(counts) - max(room, 0), 0) :]
    return [f"{word}  {made.id}: {len(features.passed(found))} of {len(found)} features passed", *proof, *kept, *last]


def _squeezed(lines: list[str], most: int) -> list[str]:
    """At most `most` lines: the last one joins the excess."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], " · ".join(" ".join(line.split()) for line in lines[most - 1 :])]


def cost(known: float | None, uncounted: int) -> str:
    """The cost in words: the known sum, and the number of runs without a known cost."""
    if not uncounted:
        return "none" if known is None else f"{known:.2f} USD"
    return f"{'unknown' if known is None else f'at least {known:.2f} USD'}, {rules.counted(uncounted)}"


def _merge(layout: Layout, branch: str) -> list[str]:
    target, branch = _target(layout, branch), encoding.shell_word(branch)
    more = f"{command('status')}; so do: runs list, memory show, usage, log"
    if not target:
        return [f"look      git switch {branch}", f"look      {more}"]
    return [
        f"look      git diff {target}...{branch}   or: {more}",
        f"merge     git switch {target} && git merge {branch}   or, one commit a feature: {command('land')}",
    ]


def _target(layout: Layout, branch: str) -> str:
    """Another branch to merge into: the default one if it exists, else the first that is not a mission's; "" for none."""
    there = [ref.removeprefix(BRANCHES) for ref in refs.positions(layout.folders.top, BRANCHES)]
    named = repository.default_branch(layout.folders.top) or ""
    own = ("", branch, branch + HELD)
    others = [name for name in (named, *there) if name not in own and not name.startswith("harness/")]
    return next((encoding.shell_word(name) for name in others if name in there or name == named), "")


def _remedy(layout: Layout, view: View, word: str) -> list[str]:
    if word == f"ESCALATE {rules.PROOF}" and view.doubts:
        return [f"why       {one.text}" for one in view.doubts] + [f"next      {one.remedy}" for one in view.doubts]
    first, _, what = word.partition(" ")
    if first == "ESCALATE":
        fault = escalations.first_fault(view)
        asked = escalations.WHY.get(what, escalations.UNKNOWN)
        return [
            f"why       {' '.join(filter(None, [asked, fault]))}   ({command('escalation')})",
            f'next      {command("escalation answer")} "what to do", then {command()}',
        ]
    if first == "CHECKPOINT":
        asks = checkpoints.behind(what, view.asks.all)[:1]
        name = encoding.shell_word(asks[0].name if asks else what)
        return [
            *(f"why       {faults.first(ask.text) or ask.why}" for ask in asks),
            *(f"read      {words}" for ask in asks for words, _ in ask.read[:2]),
            f"next      {command('checkpoint grant')} {name}   or: {command('checkpoint deny')} {name} --note 'WHY'",
        ]
    return [f"why       {_halted(view, first)}", f"next      {command('status')}"]
