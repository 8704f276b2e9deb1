"""The facts as the templates of the page show them: sums, series of plots, groups of claims, and values in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import log10

from harness.base import clock, faults
from harness.base.record import Record
from harness.decision import overview
from harness.mission import features, runs
from harness.mission.features import Feature
from harness.mission.runs import RunResult
from harness.report._facts import UNKNOWN, ClaimRow, Facts, RunRow

MANY_DAYS = 62
MAX_DIFF_CHARS, ALL_DIFF_CHARS = 40_000, 600_000  # of one feature, and of all
DAY = 24 * 3600
TOKENS = ("input", "cache_read", "cache_write", "output")


class ClaimGroup(Record):
    """The claims of a feature, and what it changed; of no feature: the other claims."""

    title: str
    claims: list[ClaimRow]
    feature: str = ""
    diff: str = ""


class Figure(Record):
    """A plot: each series has a value per label. `top`: the end of its axis; `shown`: a value in words; `moments`: unix seconds
    of the labels, where they are times."""

    title: str
    labels: list[str]
    series: dict[str, list[float]]
    top: float
    shown: Callable[[float], str]
    note: str = ""
    moments: list[float] = []

    @property
    def rows(self) -> list[list[str]]:
        """The numbers of the plot as rows of a table."""
        return [
            [label, *(self.shown(values[at]) for values in self.series.values())]
            for at, label in enumerate(self.labels)
        ]


# sections


def claims(found: Facts) -> list[ClaimGroup]:
    """The claims by feature, and the other claims."""
    left = {one.claim.id: one for one in found.proofs}
    room = min(MAX_DIFF_CHARS, ALL_DIFF_CHARS // max(len(found.diffs), 1))
    groups = []
    for feature in found.features:
        mine = [left.pop(name) for name in feature.claims if name in left]
        if mine:
            title, diff = f"{feature.id} {feature.title}", faults.cut(found.diffs.get(feature.id, ""), room)
            groups.append(ClaimGroup(title=title, claims=mine, feature=feature.id, diff=diff))
    others = ClaimGroup(title="Other claims" if groups else "Claims", claims=[*left.values()])
    return [*groups, others] if left else groups


def lanes(found: Facts) -> list[str]:
    """The lanes of finished runs, the unknown one last."""
    return sorted({one.lane for one in found.runs}, key=lambda name: (name == UNKNOWN, len(name), name))


def roles(found: Facts) -> list[str]:
    """The roles, ordered by their first run."""
    return list(dict.fromkeys(one.result.role for one in found.runs))


def days(found: Facts) -> list[Figure]:
    """Cost, tokens and time by role and day."""
    return [
        _by_day(found, "Cost by role and day, in USD", lambda one: one.usage.cost_usd, "{:.2f}".format, "cost"),
        _by_day(found, "Tokens by role and day", lambda one: one.usage.tokens, shortened, "tokens"),
        _by_day(
            found, "Working time by role and day, in minutes", lambda one: one.result.seconds / 60, "{:,.1f}".format
        ),
    ]


def _by_day(
    found: Facts,
    title: str,
    value: Callable[[RunRow], float | None],
    shown: Callable[[float], str],
    unknown: str = "",
) -> Figure:
    """A figure of these values; without any, it has no series. `unknown`: the name of a value that agents may not report."""
    labels = sorted({one.result.at[:10] for one in found.runs})[-MANY_DAYS:]
    series = {role: [0.0] * len(labels) for role in roles(found)}
    for one in found.runs:
        if one.result.at[:10] in labels:
            series[one.result.role][labels.index(one.result.at[:10])] += value(one) or 0.0
    used = {role: values for role, values in series.items() if any(values)}
    silent = sum(bool(one.result.agent) and value(one) is None for one in found.runs)
    note = f"{silent} runs of agents reported no {unknown} and are not included." if silent and unknown else ""
    if not used:
        note = f"No run reported any {unknown}." if unknown else ""
    top = ceiling(max(map(sum, zip(*used.values(), strict=True)), default=0.0))
    return Figure(title=title, labels=[day[5:] for day in labels], series=used, top=top, shown=shown, note=note)


def spent(found: Facts) -> list[list[str]]:
    """Rows of runs, time, tokens and cost by role; `?` where no run reported a value."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for one in found.runs:
        row = sums[one.result.role]
        row["runs"] += 1
        row["seconds"] += one.result.seconds
        for name in (*TOKENS, "cost_usd"):
            count = getattr(one.usage, name)
            if count is not None:
                row[name] += count
    return [
        [
            role,
            f"{row['runs']:.0f}",
            duration(row["seconds"]),
            *(shortened(row[name]) if name in row else "?" for name in TOKENS),
            money(row["cost_usd"]) if "cost_usd" in row else "?",
        ]
        for role, row in sums.items()
    ]


def growth(found: Facts) -> Figure | None:
    """The memory after each curation; None before the first."""
    if not found.growth:
        return None
    moments = [min(one.start for one in found.runs), *(one.at for one in found.growth)]
    series = {
        "curated notes": [0.0, *(float(one.notes) for one in found.growth)],
        "lessons on the pages": [0.0, *(float(one.lessons) for one in found.growth)],
        "lessons for later missions": [0.0, *(float(one.graduated) for one in found.growth)],
    }
    return Figure(
        title="Memory after each curation (UTC)",
        labels=[clock.stamp(at) for at in moments],
        series=series,
        top=ceiling(max(max(values) for values in series.values())),
        shown="{:.0f}".format,
        moments=moments,
    )


def ceiling(most: float) -> float:
    """The end of an axis for values up to `most`: 1, 2 or 5 times a power of ten."""
    if most <= 0:
        return 1.0
    power = 10.0 ** int(log10(most) // 1)
    return next(power * step for step in (1, 2, 5, 10) if power * step >= most)


# words


def waits(feature: Feature) -> str:
    """What a blocked feature waits for; "" for any other."""
    note = overview.waits(feature)
    return f"waits for {', '.join(features.named(note)) or note['text']}" if note else ""


def kind(result: RunResult) -> str:
    """The CSS class of a result: good, bad or cut short."""
    if result.outcome in runs.CUT:
        return "warn"
    return "bad" if result.negative else "good"


def attempt(one: RunRow) -> str:
    """A run as a title: role, end and duration."""
    return f"{one.result.role}: {one.result.said}, {duration(one.result.seconds)}"


def duration(seconds: float) -> str:
    """Seconds in a readable form."""
    return f"{seconds:.1f} s" if seconds < 60 else clock.duration(int(seconds))


def money(usd: float | None) -> str:
    """A cost, "" if it is unknown."""
    return "" if usd is None else f"{usd:.2f} USD"


def shortened(value: float) -> str:
    """A count of tokens, shortened."""
    if value < 10_000:
        return f"{value:.0f}"
    return f"{value / 1000:.0f}k" if value < 999_500 else f"{value / 1_000_000:.1f}M"


def when(stamp: str) -> str:
    """`2026-04-24T10:05:12Z` as `2026-04-24 10:05 UTC`."""
    return f"{stamp[:10]} {stamp[11:16]} UTC" if clock.seconds_of(stamp) else stamp


def short_time(stamp: str) -> str:
    """`2026-04-24T10:05:12Z` as `04-24 10:05`."""
    return f"{stamp[5:10]} {stamp[11:16]}" if clock.seconds_of(stamp) else stamp


def moment(seconds: float, span: float) -> str:
    """A time on an axis of `span` seconds, as precise as that needs."""
    stamp = clock.stamp(seconds)
    return f"{stamp[5:10]} {stamp[11:16]}" if span > DAY / 2 else stamp[11:19] if span < 3600 else stamp[11:16]
