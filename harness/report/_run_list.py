"""The list of runs on the page: each is an expandable line, so that mouse and keyboard reach every run."""

from __future__ import annotations

from harness.base import clock, faults
from harness.mission import runs
from harness.mission.receipts import Receipt
from harness.mission.runs import RunResult
from harness.report._facts import Facts, OpenRunRow, RunRow
from harness.report._markup import Html, element, folded, joined
from harness.state.layout import command

ALL_BYTES = 1_100_000  # for the text and output of all runs: the size of the page is bounded
MIN_RUN_CHARS, MAX_RUN_CHARS = 300, 8_000  # share of one run, in characters
REASON_CHARS = 110
TEXT_CHARS = 400
MANY_GREEN = 12  # listed receipts of one run


def section(found: Facts) -> Html:
    """Every run, newest first, with a filter field."""
    room = max(MIN_RUN_CHARS, min(MAX_RUN_CHARS, ALL_BYTES // max(len(found.runs), 1)))
    rows = [_unfinished(one) for one in reversed(found.unfinished)]
    claims = {one.claim.id for one in found.proofs}
    rows += [_run(one, room, claims) for one in reversed(found.runs)]
    field = element("label", "Show only runs with these words", element("input", type="search", autocomplete="off"))
    tools = element("div", field, element("button", "Open or close all", type="button"), class_="tools", hidden=True)
    count = element("p", element("output", f"{len(rows)} runs"), ", the newest first. Times are UTC.", class_="note")
    whole = f"The full texts: {command('runs show')} RUN, {command('log')} RUN, {command('replay')} RUN."
    words = count if rows else element("p", "Nothing has run yet.")
    return element("div", element("div", tools, words, class_="find"), *rows, element("p", whole, class_="note"))


def anchor(run_id: str) -> str:
    """The HTML id of a run."""
    return f"run-{run_id}"


def link(run_id: str, words: str = "", known: bool = True) -> Html:
    """A link to a run on the page; only its id if the page does not contain it."""
    shown = words or run_id
    return element("a", shown, href=f"#{anchor(run_id)}", class_="id") if known else element("span", shown, class_="id")


def kind(result: RunResult) -> str:
    """The CSS class of a result: good, bad or cut short."""
    if result.outcome in runs.CUT:
        return "warn"
    return "bad" if result.negative else "good"


def badge(words: str, kind: str) -> Html:
    """A word in a frame; its colour adds no information."""
    return element("span", words, class_=f"badge {kind}".rstrip())


def short_time(stamp: str) -> str:
    """`2026-04-24T10:05:12Z` as `04-24 10:05`."""
    return f"{stamp[5:10]} {stamp[11:16]}" if clock.seconds_of(stamp) else stamp


def duration(seconds: float) -> str:
    """Seconds in a readable form."""
    return f"{seconds:.1f} s" if seconds < 60 else clock.duration(int(seconds))


def money(usd: float | None) -> str:
    """A cost, "" if it is unknown."""
    return "" if usd is None else f"{usd:.2f} USD"


def _run(one: RunRow, room: int, claims: set[str]) -> Html:
    result = one.result
    why = faults.first(result.reason, REASON_CHARS)
    parts = [
        element("time", short_time(clock.stamp(one.start)), datetime=clock.stamp(one.start), class_="num soft"),
        element("strong", f"{result.role} {result.feature}".strip()),
        badge(result.said, kind(result)),
        element("span", why or result.commit[:10], class_="grow soft"),
        element(
            "span",
            " · ".join(filter(None, (money(one.usage.cost_usd), duration(result.seconds)))),
            class_="num soft",
        ),
    ]
    summary = element("span", *_spaced(parts), class_="line")
    inside = [_facts(one), *_said(one, room, claims)]
    return folded(summary, *inside, id=anchor(result.run), class_="run")


def _spaced(parts: list[Html]) -> list[Html]:
    return [joined(parts, " ")]


def _unfinished(one: OpenRunRow) -> Html:
    parts = [
        element("time", short_time(one.at), class_="num soft"),
        element("strong", f"{one.role} {one.feature}".strip()),
        badge(one.state, "warn"),
    ]
    words = f"{one.run} has no line in the run log."
    return folded(
        element("span", *_spaced(parts), class_="line"), element("p", words), id=anchor(one.run), class_="run"
    )


def _facts(one: RunRow) -> Html:
    """The facts of a run, as names and values, without empty ones."""
    result, used = one.result, one.usage
    counts = {"in": used.input, "cache read": used.cache_read, "cache write": used.cache_write, "out": used.output}
    rows = {
        "run": element("span", result.run, class_="id"),
        "agent": " · ".join(filter(None, (result.agent, used.model))),
        "attempt": one.attempt or "",
        "lane": one.lane,
        "started": clock.stamp(one.start),
        "took": duration(result.seconds),
        "commit": element("code", result.commit[:12]) if result.commit else "",
        "cost": money(used.cost_usd) if result.usage else "",
        "tokens": ", ".join(f"{name} {count:,}" for name, count in counts.items() if count is not None),
        "confined": result.confined or "not confined",
        "reverted": ", ".join(result.refused),
        "kept out": ", ".join(result.kept_out),
        "secrets": "; ".join(result.secrets),
        "not landed": result.unlanded,
        "forgotten": one.forgotten,
        "files": "changed since the run closed, so its receipts do not count" if one.changed else "",
    }
    cells = [element("dt", name) + element("dd", _cut(value)) for name, value in rows.items() if value]
    return element("dl", *(Html(cell) for cell in cells), class_="facts")


def _cut(value: object) -> object:
    return value if isinstance(value, Html) else faults.cut(str(value), TEXT_CHARS)


def _said(one: RunRow, room: int, claims: set[str]) -> list[Html]:
    """Reason, receipts, notes and reply, in about `room` characters."""
    parts = []
    if "\n" in one.result.reason or len(one.result.reason) > REASON_CHARS:
        parts.append(element("pre", faults.cut(one.result.reason, room // 4), tabindex=0))
    parts += [_receipts(one.receipts, room // 2, claims)] if one.receipts else []
    if one.notes:
        left, rows = room // 4, []
        for tag, words in one.notes:
            left -= len(words)
            rows += [element("li", element("strong", tag), f" {words}")] if left > 0 else []
        more = len(one.notes) - len(rows)
        rows += [element("li", f"and {more} more")] if more else []
        parts += [element("h3", "Notes"), element("ul", *rows)]
    if one.reply.strip():
        parts.append(
            folded("Reply", element("pre", faults.cut(one.reply.strip(), room // 4), tabindex=0), class_="plain")
        )
    return parts


def _receipts(found: list[Receipt], room: int, claims: set[str]) -> Html:
    """The red receipts with their output, the green ones by name."""
    red = [one for one in found if not one.green]
    share = room // max(len(red), 1)
    rows = [_red(one, share, claims) for one in red if share > len(one.claim)]
    if len(rows) < len(red):
        rows.append(element("p", f"and {len(red) - len(rows)} more red ones"))
    green = [one for one in found if one.green]
    names = [
        joined([claim_link(one.claim, one.claim in claims), f" {one.seconds:.2f} s"]) for one in green[:MANY_GREEN]
    ]
    more = f", and {len(green) - len(names)} more" if len(green) > len(names) else ""
    words = element("p", badge(f"{len(green)} green", "good"), " ", joined(names, ", "), more) if green else ""
    return element("div", element("h3", "Receipts"), *rows, words)


def _red(one: Receipt, room: int, claims: set[str]) -> Html:
    head = element(
        "p",
        badge(one.verdict, "bad"),
        " ",
        claim_link(one.claim, one.claim in claims),
        f" {one.phase}, {one.seconds:.2f} s",
    )
    code = element("pre", faults.cut(one.command.strip(), room // 3), tabindex=0)
    output = one.output.strip()
    kept = output if len(output) <= room - room // 3 else "…" + output[-(room - room // 3) :]
    return element("div", head, code, element("pre", kept or "(no output)", tabindex=0))


def claim_link(claim_id: str, known: bool = True) -> Html:
    """A link to a claim on the page; only its id if it is no longer in the contract."""
    if not known:
        return element("span", claim_id, class_="id")
    return element("a", claim_id, href=f"#claim-{claim_id}", class_="id")
