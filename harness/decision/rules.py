"""The rules: map a view of the mission and the time to one decision. Pure: no writes, no locks, no processes.

The first rule that matches wins, in the order of the table in docs/contract.md. `views.gather` makes the view.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from harness.base import errors
from harness.base.record import Record
from harness.mission import features, lease, runs
from harness.mission.features import Feature
from harness.mission.runs import RunResult, Totals

EQUAL_DECISIONS = 3
WARN_AT = 80  # percent of a cap
REJECTED_PLANS = 3
PROOF = "proof"  # the escalation in which a person decides unproven claims
CODES = {
    "DONE": errors.DONE,
    "NEXT": errors.DONE,
    "WAIT": errors.DONE,
    "STOPPED": errors.STOPPED,
    "PAUSED": errors.STOPPED,
    "CHECKPOINT": errors.CHECKPOINT_WAITING,
    "ESCALATE": errors.ESCALATED,
}
MONEY = ("cost", "day", "feature")  # the caps in USD
BUDGET_CODES = dict.fromkeys(("runs", "hours"), errors.RUN_CAP) | dict.fromkeys((*MONEY, "tokens"), errors.COST_CAP)


class Caps(Record):
    """Caps, cumulative over restarts; None means no cap. What the mission cost besides what a cap counts, None if that cap does
    not apply here: `before_today_usd` for the cap of a day (UTC), `elsewhere_usd` for that of a feature."""

    max_runs: int
    max_hours: float
    stall_after: int
    max_cost_usd: float | None
    max_tokens: int | None
    max_cost_usd_day: float | None = None
    max_cost_usd_feature: float | None = None
    before_today_usd: float | None = None
    elsewhere_usd: float | None = None


class Cap(Record):
    """The spent part of a cap. `uncounted`: runs whose cost is not in it."""

    name: str
    spent: float
    most: float
    uncounted: int = 0

    @property
    def percent(self) -> int:
        """The spent part, in whole percent."""
        return int(round(100 * self.spent / self.most, 6))

    @property
    def key(self) -> str:
        """Its name in `[limits]` of config.toml."""
        return f"max_cost_usd_{self.name}".removesuffix("_cost") if self.name in MONEY else f"max_{self.name}"

    @property
    def words(self) -> str:
        """The cap in words, such as `cost 20.31 of 25.00 USD (81 %)`."""
        digits, unit = (2, " USD") if self.name in MONEY else (int(self.name == "hours"), "")
        name = f"cost of the {self.name}" if self.name in MONEY[1:] else self.name
        least, more = ("at least ", f", {counted(self.uncounted)}") if self.uncounted else ("", "")
        spent = f"{self.spent:.{digits}f} of {self.most:.{digits}f}{unit}"
        return f"{name} {least}{spent} ({self.percent} %){more}"


def counted(uncounted: int) -> str:
    """The number of runs of unknown cost, in words."""
    return f"{uncounted} run{'' if uncounted == 1 else 's'} not counted"


class Doubt(Record):
    """An obstacle to DONE after everything has passed, the command by which a person resolves it, and its effect."""

    text: str
    remedy: str
    outcome: str


class PendingCheckpoint(Record):
    """A waiting checkpoint: its name, cause and reason, and (command, what it shows) for reading."""

    name: str
    cause: str
    why: str
    text: str = ""
    read: list[tuple[str, str]] = []


class PendingCheckpoints(Record):
    """The waiting checkpoints. `now`: immediate ones; `features`: {feature: before its work begins}; `done`: before the
    mission is DONE; `wanted`: a person's request that no accepted plan has seen."""

    now: list[PendingCheckpoint] = []
    features: dict[str, PendingCheckpoint] = {}
    done: PendingCheckpoint | None = None
    wanted: bool = False

    @property
    def all(self) -> list[PendingCheckpoint]:
        """All checkpoints that can be answered now or later, in the order in which they stop the mission."""
        return [*self.now, *self.features.values(), *([self.done] if self.done else [])]


class View(Record):
    """The inputs of a decision. `escalation`: kind of an unanswered escalation.md, else "". `uncurated` is counted up to
    `curate_after` only. `roles`: {capability: its role}. `serious`: open critical and major issues. `swept`: a final sweep
    passed at this tree, contract and spec; `unlanded`: why its work is not on the mission's branch; `doubts`: other obstacles
    to DONE. `newest`: the last finished runs, newest first. `answered`: the newest run when a person last answered.
    `set_aside`: {feature set aside since a claim was last newly proven: its last fault}, newest first. `mark`: the present
    fingerprint. `over`: {feature: its USD, of those at their cap}. `held`: {claim: the live run that holds it}. `asks`: the
    waiting checkpoints."""

    stop: bool = False
    pause: bool = False
    asks: PendingCheckpoints = PendingCheckpoints()
    escalation: str = ""
    limits: Caps
    totals: Totals
    wait_since: int = 0
    wait_until: int = 0
    wait_why: str = ""
    roles: dict[str, str]
    features: list[Feature]
    spec_changed: bool = False
    uncurated: int = 0
    curate_after: int = 20
    serious: list[str] = []
    swept: bool = False
    unlanded: str = ""
    doubts: list[Doubt] = []
    newest: list[RunResult] = []
    answered: str = ""
    set_aside: dict[str, str] = {}
    mark: str = ""
    over: dict[str, float] = {}
    held: dict[str, str] = {}


class Decision(Record):
    """One word and its object: NEXT has a role and optionally a feature, WAIT a time and a reason, others an optional
    name."""

    word: str
    what: str = ""
    feature: str = ""
    reason: str = ""

    @property
    def line(self) -> str:
        """The decision as `harness next` prints it."""
        return " ".join(part for part in (self.word, self.what, self.feature, self.reason) if part)

    @property
    def code(self) -> int:
        """The exit code of run.sh for this decision; 0 for NEXT, WAIT and DONE."""
        if self.word == "BUDGET":
            return BUDGET_CODES[self.what]
        if self.word == "ESCALATE" and self.what == "plan":
            return errors.PLAN_REJECTED
        return CODES[self.word]


def decide(view: View, now: int) -> Decision:
    """What is due; the first rule that matches wins."""
    halt = halted(view, now)
    if halt:
        return halt
    due = _free(view)
    return Decision(word="ESCALATE", what="stalled") if _spins(view, due) else due


def _free(view: View) -> Decision:
    """The first due decision that no live run holds. While a run is open, the mission waits for it and does not end."""
    for due in _due(view):
        if due.word != "NEXT":
            break
        claim = lease.claims_of(_capability(view, due.what), due.feature)
        if not view.held.keys() & set(claim):
            return due
        if lease.PLAN in claim and not due.feature and (not view.features or view.spec_changed or view.asks.wanted):
            break  # the rest belongs to a plan that is being replaced
    if not view.held:
        return due
    return Decision(word="WAIT", what="0", reason=f"for {', '.join(dict.fromkeys(view.held.values()))}")


def _capability(view: View, role: str) -> str:
    return next((capability for capability, name in view.roles.items() if name == role), "")


def halted(view: View, now: int) -> Decision | None:
    """The rules that prevent any start."""
    if view.stop:
        return Decision(word="STOPPED")
    if view.pause:
        return Decision(word="PAUSED")
    if view.asks.now:
        return Decision(word="CHECKPOINT", what=view.asks.now[0].name)
    if cap := budget(view):
        return Decision(word="BUDGET", what=cap)
    if runs.waits(view.wait_since, view.wait_until, now):
        return Decision(word="WAIT", what=str(view.wait_until), reason=view.wait_why)
    if view.escalation:
        return Decision(word="ESCALATE", what=view.escalation)
    if view.totals.rejected >= REJECTED_PLANS:
        return Decision(word="ESCALATE", what="plan")
    return None


def budget(view: View) -> str:
    """The first exhausted cap: runs, hours, cost or tokens; "" if there is none."""
    return next((cap.name for cap in spent(view.limits, view.totals)), "")


def spent(limits: Caps, totals: Totals) -> list[Cap]:
    """The exhausted caps."""
    return [cap for cap in caps(limits, totals) if cap.spent >= cap.most]


def caps(limits: Caps, totals: Totals) -> list[Cap]:
    """The state of each cap, in the order in which they stop a mission, without unset or unknown ones."""
    known = (
        ("runs", totals.runs, limits.max_runs),
        ("hours", totals.seconds / 3600, limits.max_hours),
        ("cost", totals.cost_usd, limits.max_cost_usd),
        ("day", _without(totals, limits.before_today_usd), limits.max_cost_usd_day),
        ("feature", _without(totals, limits.elsewhere_usd), limits.max_cost_usd_feature),
        ("tokens", totals.tokens, limits.max_tokens),
    )
    return [
        Cap(name=name, spent=spent, most=most, uncounted=totals.uncounted if name == "cost" else 0)
        for name, spent, most in known
        if spent is not None and most is not None
    ]


def _without(totals: Totals, other: float | None) -> float | None:
    return None if totals.cost_usd is None or other is None else round(totals.cost_usd - other, 9)


def exhausted(view: View) -> list[Cap]:
    """The caps that stop the mission: the exhausted ones, else those of features."""
    most = view.limits.max_cost_usd_feature or 0
    over = (view.over[one.id] for one in ready(view.features) if one.id in view.over)
    own = [Cap(name="feature", spent=usd, most=most) for usd in over]
    return spent(view.limits, view.totals) or own


def near(limits: Caps, totals: Totals) -> list[Cap]:
    """The caps of which at least WARN_AT percent is used up."""
    return [cap for cap in caps(limits, totals) if cap.percent >= WARN_AT]


def _due(view: View) -> Iterator[Decision]:
    """The rules from NEXT on, in order; the last one always matches."""
    plans, commits, judges, curates = (view.roles[name] for name in ("plans", "commits", "judges", "curates"))
    if not view.features or view.spec_changed or view.asks.wanted:
        yield Decision(word="NEXT", what=plans)
    if view.uncurated >= view.curate_after:
        yield Decision(word="NEXT", what=curates)
    for feature in view.features:
        if feature.status == "validating":
            yield Decision(word="NEXT", what=judges, feature=feature.id)
    begun = [one.id for one in view.features if one.status == "in_progress"]
    # While the run of a feature is open, a start for it is refused as busy.
    under_way = [Decision(word="NEXT", what=commits, feature=name) for name in begun]
    if is_stalled(view):
        yield from under_way
        yield Decision(word="ESCALATE", what="stalled")
    for feature in view.features:
        if needs_plan(feature):
            yield Decision(word="NEXT", what=plans, feature=feature.id)
    able = ready(view.features)
    for feature in (one for one in able if one.id not in view.over):
        gate = view.asks.features.get(feature.id)
        yield Decision(word="CHECKPOINT" if gate else "NEXT", what=gate.name if gate else commits, feature=feature.id)
    if view.serious:
        yield Decision(word="NEXT", what=plans)
    yield from under_way
    done = all(feature.status == "passed" for feature in view.features)
    if done and not view.swept:
        yield Decision(word="NEXT", what=judges)
    if view.uncurated and not view.held:
        yield Decision(word="NEXT", what=curates)
    yield from (Decision(word="BUDGET", what="feature", feature=one.id) for one in able if one.id in view.over)
    if done and view.unlanded:
        yield Decision(word="ESCALATE", what="unlanded")
    if done and view.doubts:
        yield Decision(word="ESCALATE", what=PROOF)
    if done and view.asks.done:
        yield Decision(word="CHECKPOINT", what=view.asks.done.name)
        return
    yield Decision(word="DONE") if done else Decision(word="ESCALATE", what="stuck")


def needs_plan(feature: Feature) -> bool:
    """Whether a feature has no attempts left and was not replanned, or has some and its worker disputes a claim."""
    spent = feature.status in ("todo", "failing") and feature.tries_left <= 0 and not feature.replanned
    return spent or (feature.tries_left > 0 and bool(features.disputed(feature)))


def is_set_aside(feature: Feature) -> bool:
    """Whether only a person can advance a feature: its attempts and its repair plan are used up, or its worker is
    blocked by something that no other feature provides."""
    if feature.status == "blocked":
        return feature.blocked_by in ("reason", "dispute") and not needs_plan(feature)
    return feature.status in ("todo", "failing") and feature.tries_left <= 0 and feature.replanned


def is_stalled(view: View) -> bool:
    """Whether too many features, or two with the same fault, were set aside without a newly proven claim in between."""
    return len(view.set_aside) >= view.limits.stall_after or bool(common_fault(view))


def common_fault(view: View) -> str:
    """The common last fault of two or more features that were set aside, or ""."""
    said = [*filter(None, view.set_aside.values())]
    return next((fault for fault in said if said.count(fault) > 1), "")


def ready(found: list[Feature]) -> list[Feature]:
    """The features ready for a worker, in order: failing ones by fewest attempts, then the others by priority."""
    done = features.passed(found)
    waiting = [one for one in found if one.status in ("todo", "failing") and one.tries_left > 0]
    able = [one for one in waiting if done.issuperset(one.depends_on)]
    return sorted(able, key=lambda one: (0, one.attempts) if one.status == "failing" else (1, one.priority))


def _spins(view: View, due: Decision) -> bool:
    """Whether the same decision ran three times in a row since a person last answered, and changed nothing."""
    newest = list(takewhile(lambda run: run.run != view.answered, view.newest[:EQUAL_DECISIONS]))
    if due.word != "NEXT" or len(newest) < EQUAL_DECISIONS:
        return False
    return all(
        (run.role, run.feature, run.mark) == (due.what, due.feature, view.mark)
        and run.trigger != runs.ENTERED
        and run.outcome not in runs.FREE_OF_BLAME  # an interrupted run does not count
        for run in newest
    )


def leaving(view: View, word: str) -> Decision | None:
    """One last curator run (code only) before run.sh ends with `word`, if notes wait."""
    if view.uncurated and word.split(" ")[0] not in ("STOPPED", "PAUSED", "WAIT", "TIME"):
        return Decision(word="NEXT", what=view.roles["curates"])
    return None
