"""The page of a mission: one self-contained HTML file that works without network and script."""

from __future__ import annotations

from harness.base import clock
from harness.decision import rules
from harness.mission import features
from harness.proof import index
from harness.report import _run_list, _sections, _style
from harness.report._facts import Facts
from harness.report._markup import Html, element, joined

SECTIONS = (
    ("proof", "What is proven", _sections.proof),
    ("features", "Features by attempts", _sections.queue),
    ("timeline", "Timeline", _sections.timeline),
    ("spending", "Cost and tokens", _sections.spending),
    ("people", "Escalations and issues", _sections.people),
    ("signs", "Signs", _sections.signs),
    ("memory", "Memory", _sections.memory),
    ("runs", "Runs", _run_list.section),
)


def render(found: Facts) -> bytes:
    """The page in UTF-8."""
    head = [
        Html('<meta charset="utf-8"/>'),
        element("meta", http_equiv="Content-Security-Policy", content=_style.policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{found.id}: report"),
        element("style", Html(_style.sheet())),
    ]
    links = [element("li", element("a", title, href=f"#{name}")) for name, title, _ in SECTIONS]
    parts = [
        element(
            "section", element("h2", title, id=f"{name}-title"), show(found), id=name, aria_labelledby=f"{name}-title"
        )
        for name, title, show in SECTIONS
    ]
    body = [
        element("header", *_top(found)),
        element("nav", element("ul", *links), aria_label="Sections"),
        element("main", *parts),
        element("script", Html(_style.SCRIPT)),
    ]
    whole = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n".encode()


def _top(found: Facts) -> list[Html]:
    where = f"on the branch {found.branch}" if found.branch else ""
    state = "archived" if found.archived else found.due
    made = f"{where}, started {_sections.when(found.created)}; as of {_sections.when(clock.stamp(found.made))}".lstrip(
        ", "
    )
    return [
        element("h1", found.id),
        element("p", _run_list.badge(state, _colour(state)), " ", element("span", made, class_="soft")),
        _sections.unread(found.faults),
        *_asks(found),
        element("dl", *(_tile(*one) for one in _tiles(found)), class_="tiles"),
    ]


def _colour(state: str) -> str:
    word = state.split(" ")[0]
    return {"DONE": "good", "NEXT": "", "WAIT": "warn", "archived": ""}.get(word, "bad")


def _asks(found: Facts) -> list[Html]:
    """A prominent line if the mission waits for a person."""
    waiting = [one.kind for one in found.asked if not one.at]
    if not waiting:
        return []
    words = [f"A person is needed ({', '.join(waiting)}): ", element("a", "the questions", href="#people"), "."]
    return [element("p", *words, class_="alert bad")]


def _tiles(found: Facts) -> list[tuple[str, str, str]]:
    totals = found.totals
    failing = sum(one.status in ("failing", "blocked") for one in found.features)
    red = sum(one.result.negative for one in found.runs)
    cost = "unknown" if totals.cost_usd is None else f"{totals.cost_usd:.2f} USD"
    if totals.cost_usd is None and not totals.uncounted:
        cost = "none"
    return [
        (
            "features passed",
            f"{len(features.passed(found.features))} of {len(found.features)}",
            _some(failing, "failing or blocked"),
        ),
        ("claims proven", *_proven(found)),
        ("runs", f"{len(found.runs)}", _some(red, "red or cut short")),
        ("working time", _run_list.duration(totals.seconds), ""),
        ("cost", cost, rules.counted(totals.uncounted) if totals.uncounted else ""),
        ("tokens", "none" if totals.tokens is None else _sections.shortened(totals.tokens), ""),
    ]


def _proven(found: Facts) -> tuple[str, str]:
    """The number of proven claims, and of all; `?` if it cannot be computed."""
    if any(one.status is None for one in found.proofs):
        return f"? of {len(found.proofs)}", "not computed: a record cannot be read"
    proven = sum(one.status is not None and one.status.word == index.PROVEN for one in found.proofs)
    return f"{proven} of {len(found.proofs)}", _some(len(found.proofs) - proven, "not")


def _some(count: int, words: str) -> str:
    return f"{count} {words}" if count else ""


def _tile(name: str, value: str, more: str) -> Html:
    return element("div", element("dt", name), element("dd", value, joined([element("small", more)] if more else [])))
