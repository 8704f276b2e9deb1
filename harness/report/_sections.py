"""The sections of the page: proof, features, timeline, spending, people, memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from harness.base import clock, faults
from harness.decision import overview
from harness.mission import features
from harness.mission.contract import Check
from harness.proof import index
from harness.proof.index import ClaimStatus
from harness.report import _plots
from harness.report._facts import UNKNOWN, ClaimRow, Facts, PersonQuestion, RunRow
from harness.report._markup import Html, element, folded, joined, table
from harness.report._run_list import anchor, badge, claim_link, duration, kind, link, money
from harness.state.layout import command

WORDS = {index.PROVEN: "good", index.GUARDED: "warn", index.UNPROVEN: "bad", index.MANUAL: "warn"}
STATES = {"passed": "good", "failing": "bad", "blocked": "warn", index.UNPROVEN: "warn"}
MAX_CHECK_CHARS = 1_500
MAX_PAGE_CHARS = 40_000
MAX_QUESTION_CHARS = 6_000
MANY_DAYS = 62
ALL_DIFF_CHARS = 600_000  # of all features


def proof(found: Facts) -> Html:
    """Each claim, by feature, with its newest red and green receipt, and its checks."""
    if not found.proofs:
        return element("p", "There is no contract yet, so there are no claims.")
    left = {one.claim.id: one for one in found.proofs}
    known = {one.result.run for one in found.runs}
    parts: list[Html] = []
    for feature in found.features:
        mine = [left.pop(name) for name in feature.claims if name in left]
        if mine:
            parts += [element("h3", f"{feature.id} {feature.title}"), *(_claim(one, known) for one in mine)]
            parts += _diff(found, feature.id)
    if left:
        title = "Other claims" if parts else "Claims"
        parts += [element("h3", title), *(_claim(one, known) for one in left.values())]
    return joined(parts)


def _diff(found: Facts, feature: str) -> list[Html]:
    """What the feature changed, folded, in its share of the page."""
    room = min(MAX_PAGE_CHARS, ALL_DIFF_CHARS // max(len(found.diffs), 1))
    text = faults.cut(found.diffs.get(feature, ""), room)
    whole = element("p", f"The whole, coloured: {command('diff')} {feature}", class_="note")
    return [folded(f"What {feature} changed", element("pre", text, tabindex=0), whole)] if text else []


def _claim(one: ClaimRow, known: set[str]) -> Html:
    status = one.status
    word = status.word if status else "not computed"
    marks = [badge(mark, "warn") for mark in status.marks] if status else []
    name = element("strong", one.claim.id, class_="id")
    line = [badge(word, WORDS.get(word, "warn")), *marks, name, element("span", one.claim.text, class_="grow")]
    line += (
        [element("span", _course(status), class_="num soft note")] if status and (status.red or status.green) else []
    )
    rows = {
        "not proven": status.reason if status else "a required record cannot be read: see the top of the page",
        "newest red": _fired(status.red if status else [], known),
        "newest green": _fired(status.green if status else [], known),
    }
    cells = [joined([element("dt", name), element("dd", value)]) for name, value in rows.items() if value]
    signs = [element("li", sign) for sign in one.signs]
    inside = [
        element("dl", *cells, class_="facts"),
        *([element("p", "Looks like reward hacking:"), element("ul", *signs)] if signs else []),
        *(_check(check) for check in one.claim.checks),
        *([element("p", "No check decides this claim; a person does.")] if one.claim.manual else []),
    ]
    return folded(element("span", joined(line, " "), class_="line"), *inside, id=f"claim-{one.claim.id}")


def _course(status: ClaimStatus) -> str:
    """The commits of its newest red and green receipt."""
    both = [
        f"{word} {place[1][:7]}" for word, place in (("red", status.red), ("green", status.green)) if len(place) == 3
    ]
    return " → ".join(both)


def _fired(place: list[str], known: set[str]) -> Html | str:
    """Run, commit and time of a receipt."""
    if len(place) != 3:
        return ""
    run, commit, at = place
    return joined([link(run, known=run in known), " at ", element("code", commit[:10]), f", {at}"])


def _check(check: Check) -> Html:
    words = "guard: may be green before the work" if check.guard else ""
    return joined(
        [
            element("p", words, class_="note") if words else "",
            element("pre", faults.cut(check.run, MAX_CHECK_CHARS), tabindex=0),
        ]
    )


def queue(found: Facts) -> Html:
    """Each feature: its status, its attempts as squares, its claims."""
    if not found.features:
        return element("p", "There is no plan yet.")
    words = {one.claim.id: one.status.word for one in found.proofs if one.status}
    rows = []
    for feature in found.features:
        mine = [one for one in found.runs if one.result.feature == feature.id]
        squares = [(kind(one.result), _try(one), f"#{anchor(one.result.run)}") for one in mine]
        proven = sum(words.get(claim) == index.PROVEN for claim in feature.claims)
        waits = overview.waits(feature)
        why = f"waits for {', '.join(features.named(waits)) or waits['text']}" if waits else ""
        title = [feature.title, element("p", why, class_="note") if why else ""]
        state = badge(feature.status, STATES.get(feature.status, ""))
        cells = [
            joined(title),
            state,
            f"{feature.attempts}",
            _plots.tries(squares),
            f"{proven} of {len(feature.claims)}",
        ]
        rows.append([element("span", feature.id, class_="id"), *cells])
    marks = [("good", "good"), ("bad", "red, or not accepted"), ("warn", "cut short")]
    shown = table(("feature", "what", "status", "tries", "runs", "proven"), rows, "Features by attempts")
    return joined([shown, _plots.legend([], marks)])


def _try(one: RunRow) -> str:
    return f"{one.result.role}: {one.result.said}, {duration(one.result.seconds)}"


def timeline(found: Facts) -> Html:
    """The runs by lane, which is a tree."""
    if not found.runs:
        return element("p", "Nothing has run yet.")
    lanes = sorted({one.lane for one in found.runs}, key=lambda name: (name == UNKNOWN, len(name), name))
    roles = _roles(found)
    bars = [
        _plots.Bar(
            lane=lanes.index(one.lane),
            start=one.start,
            end=one.end,
            series=roles.index(one.result.role),
            title=f"{_try(one)} {one.result.feature}".strip(),
            link=f"#{anchor(one.result.run)}",
            bad=kind(one.result) != "good",
        )
        for one in found.runs
    ]
    note = element("p", "A lane is a worktree of runs. Each bar links to its run in the list below.", class_="note")
    return joined([_plots.timeline("Runs over time, by lane (UTC)", lanes, bars, roles), note])


def _roles(found: Facts) -> list[str]:
    """The roles, ordered by their first run."""
    return list(dict.fromkeys(one.result.role for one in found.runs))


def spending(found: Facts) -> Html:
    """Cost, tokens and time by role and day."""
    if not found.runs:
        return element("p", "Nothing was spent yet.")
    parts: list[Html] = [element("p", f"Caps: {'; '.join(found.caps)}.")] if found.caps else []
    for title, value, shown, unknown in (
        ("Cost by role and day, in USD", _cost, "{:.2f}".format, "cost"),
        ("Tokens by role and day", _tokens, shortened, "tokens"),
        ("Working time by role and day, in minutes", _minutes, "{:,.1f}".format, ""),
    ):
        parts.append(_by_day(found, title, value, shown, unknown))
    return joined([*parts, _by_role(found)])


def _cost(one: RunRow) -> float | None:
    return one.usage.cost_usd


def _tokens(one: RunRow) -> float | None:
    return one.usage.tokens


def _minutes(one: RunRow) -> float | None:
    return one.result.seconds / 60


def _by_day(
    found: Facts, title: str, value: Callable[[RunRow], float | None], shown: Callable[[float], str], unknown: str
) -> Html:
    days = sorted({one.result.at[:10] for one in found.runs})[-MANY_DAYS:]
    known = [one for one in found.runs if value(one) is not None and one.result.at[:10] in days]
    silent = [one for one in found.runs if one.result.agent and value(one) is None]
    if not any(value(one) for one in known):
        return element("p", f"No run reported any {unknown}.", class_="note") if unknown else Html("")
    series = {role: [0.0] * len(days) for role in _roles(found)}
    for one in known:
        series[one.result.role][days.index(one.result.at[:10])] += value(one) or 0.0
    note = f"{len(silent)} runs of agents reported no {unknown} and are not included." if silent and unknown else ""
    used = {role: values for role, values in series.items() if any(values)}
    return _plots.columns(title, [day[5:] for day in days], used, shown, note)


def shortened(value: float) -> str:
    """A count of tokens, shortened."""
    if value < 10_000:
        return f"{value:.0f}"
    return f"{value / 1000:.0f}k" if value < 999_500 else f"{value / 1_000_000:.1f}M"


def _by_role(found: Facts) -> Html:
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in found.runs:
        row, used = sums[one.result.role], one.usage
        row["runs"] += 1
        row["seconds"] += one.result.seconds
        for name in ("input", "cache_read", "cache_write", "output", "cost_usd"):
            count = getattr(used, name)
            if count is not None:
                row[name] += count
    names = ("input", "cache_read", "cache_write", "output")
    rows = [
        [
            role,
            f"{row['runs']:.0f}",
            duration(row["seconds"]),
            *(shortened(row[name]) if name in row else "?" for name in names),
            money(row["cost_usd"]) if "cost_usd" in row else "?",
        ]
        for role, row in sums.items()
    ]
    titles = ("role", "runs", "time", "input", "cache read", "cache write", "output", "cost")
    legend = element("p", "?: not reported.", class_="note")
    return joined([table(titles, rows, "Spending by role"), legend])


def people(found: Facts) -> Html:
    """The questions to a person with their answers, and the issues."""
    waiting = [one for one in found.asked if not one.at]
    answered = [one for one in found.asked if one.at]
    parts = [_question(one, opened=True) for one in waiting]
    parts += [_question(one, opened=False) for one in answered]
    rows = [element("li", element("time", answer.at), f" {answer.by}: {answer.text}") for answer in found.answers]
    if rows:
        parts += [element("h3", "Answers"), element("ul", *rows)]
    if not parts:
        parts = [element("p", "No question was asked.")]
    if found.issues:
        parts.append(element("h3", "Issues"))
        shown = [
            [element("span", one.id, class_="id"), one.severity, one.state, one.title, one.by] for one in found.issues
        ]
        parts.append(table(("issue", "severity", "state", "what", "by"), shown, "Issues"))
    return joined(parts)


def _question(one: PersonQuestion, opened: bool) -> Html:
    state = badge("waits for an answer", "bad") if opened else badge("answered", "good")
    line = [state, element("strong", one.kind), element("span", one.at, class_="num soft")]
    text = element("pre", faults.cut(one.text.strip(), MAX_QUESTION_CHARS), tabindex=0)
    return folded(element("span", joined(line, " "), class_="line"), text, open=opened)


def signs(found: Facts) -> Html:
    """Signs of reward hacking, possible secrets, and reverted changes, with their places."""
    rows = [element("li", claim_link(one.claim.id), f": {sign}") for one in found.proofs for sign in one.signs]
    rows += [
        element("li", link(one.result.run), f": may be a secret: {words}")
        for one in found.runs
        for words in one.result.secrets
    ]
    rows += [
        element("li", link(one.result.run), f": reverted: {', '.join(one.result.refused[:5])}")
        for one in found.runs
        if one.result.refused
    ]
    return (
        element("ul", *rows) if rows else element("p", "No signs of reward hacking, no secrets, no reverted changes.")
    )


def memory(found: Facts) -> Html:
    """The growth of the memory, and its pages."""
    parts: list[Html] = [element("p", f"{found.waiting} notes are not curated yet.")] if found.waiting else []
    if found.growth:
        first = min(one.start for one in found.runs)
        moments = [first, *(one.at for one in found.growth)]
        series = {
            "curated notes": [0.0, *(float(one.notes) for one in found.growth)],
            "lessons on the pages": [0.0, *(float(one.lessons) for one in found.growth)],
            "lessons for later missions": [0.0, *(float(one.graduated) for one in found.growth)],
        }
        parts.append(_plots.steps("Memory after each curation (UTC)", moments, series))
    for title, words in (("summary.md, in every prompt", found.summary), ("MEMORY.md, read on demand", found.memory)):
        if words.strip():
            pre = element("pre", faults.cut(words.strip(), MAX_PAGE_CHARS), tabindex=0)
            parts.append(folded(f"{title}: {len(words.strip().splitlines())} lines", pre))
    return joined(parts) if parts else element("p", "There is no memory yet.")


def unread(faults: Iterable[str]) -> Html:
    """The unreadable parts, for the top of the page; "" for none."""
    rows = [element("li", fault) for fault in faults]
    if not rows:
        return Html("")
    title = element(
        "h2", f"{len(rows)} faults: these could not be read" if len(rows) > 1 else "1 fault: this could not be read"
    )
    return element("section", title, element("ul", *rows), class_="alert bad", id="unread")


def when(stamp: str) -> str:
    """A timestamp in the format of the page."""
    return f"{stamp[:10]} {stamp[11:16]} UTC" if clock.seconds_of(stamp) else stamp
