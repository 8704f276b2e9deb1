"""How good the memory is: what the curator makes of labelled notes, against simple ways to do it and against perfect grouping.

    python bench/memory_quality.py [--half tuned|held|both|ninth|tenth] [--sizes 50,300,1000,3000] [--seeds 1,2,3]
        [--words near,first3,all] [--folds 20,0] [--jobs 2] [--parts streams,probes,identity,families] [--reworded] [--quick]
        [--details] [--write docs/memory.md]

`bench/memory_corpus/` has the notes. A stream of them goes into raw.md of a throw-away mission, the curator folds it (`--folds`:
so many entries at a time, 0 is all at once), and its pages are judged by their texts. Lessons are drawn in their two near
wordings, the first three, or all five. Recall of the summary is the share of the lessons that matter: those that the oracle
(perfect grouping, most runs first, 40 lines, 800 tokens) has on it and at least two runs noted. Figures are means over the seeds.
The families are parallel facts, half of them with a correction: what the memory loses, misses and strengthens.
`--quick` is sizes 50 and 300 with one seed. `--details` names what is wrong. A line holds a lesson if it has one of its wordings;
with `--reworded`, for pages that an agent worded, also if it has its words. `--speed` measures time and room instead, and
`--threshold` shows where that of the TF-IDF baseline comes from.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME), str(HOME / "bench")]

from memory_corpus import FRESH, HALVES, OF_CLASS, Corpus, baselines, families, load, speed, streams
from memory_corpus.families import Family, Verdict
from memory_corpus.judge import Judge, counter, lay_out, texts_of
from memory_corpus.streams import Note

from harness.memory._words import words as words_of
from harness.run.settle import curator
from harness.run.settle.curator import CurationSite
from harness.state import names
from harness.state.layout import Layout

PARTS = ("streams", "probes", "identity", "families")
SIZES, SEEDS, FOLDS = (50, 300, 1000, 3000), (1, 2, 3), (20, 0)
MISSIONS, MISSION_SIZE, IDENTITY_LINES = 3, 150, 58
TOGETHER = 25  # families in one mission: less than the lines of a page
MARK = "<!-- bench/memory_quality.py -->"
Figures = dict[str, float]


@dataclass
class Case:
    """One cell of the table, for one seed; `fold` 0 is all at once. `reworded`: as `Judge` has it."""

    half: str
    size: int
    words: str
    fold: int
    seed: int
    reworded: bool = False
    agent: bool = False


class House:
    """A mission whose memory is curated, in a folder of its own; missions may share the folder of the identities."""

    def __init__(self, folder: Path, name: str, own: list[str]) -> None:
        self.layout = Layout(str(folder / name))
        self.name, self.names, self.identity = name, own, folder / "identity"
        for path in (self.layout.path(names.RAW), self.layout.path(names.STATE_LOCK)):
            Path(path).parent.mkdir(parents=True, exist_ok=True)

    def curate(self, notes: list[Note], fold: int, *, agent: bool = False) -> float:
        """Append the notes and compact them, `fold` at a time; returns the seconds that compacting took. `agent`: with the
        operations of one that knows what each note means."""
        seconds, first_of, shown = 0.0, dict[tuple[str, int], int](), dict[tuple[str, int], str]()
        for first in range(0, len(notes), fold or len(notes)):
            some = notes[first : first + (fold or len(notes))]
            with open(self.layout.path(names.RAW), "ab") as file:
                file.write(b"".join(note.line() for note in some))
            begun = time.perf_counter()
            run, today = f"{first}-curator", some[-1].at[:10]
            rows = perfect(notes, range(first, first + len(some)), first_of, shown) if agent else None
            own, folder = frozenset(self.names), str(self.identity)
            place = CurationSite(
                layout=self.layout, folder=folder, mission=self.name, run=run, today=today, project_names=own
            )
            curator.compact_all(place, rows)
            seconds += time.perf_counter() - begun
        return seconds

    def text(self, path: str) -> str:
        """A page, "" where it is absent."""
        return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""

    def identities(self, pattern: str = "*.md") -> str:
        """The text of all identities, or of the files of their folder that match."""
        return "\n".join(path.read_text(encoding="utf-8") for path in sorted(self.identity.glob(pattern)))

    def risen(self) -> str:
        """All that is above raw.md and its archive."""
        pages = [self.text(path) for path in (self.layout.path(names.SUMMARY), self.layout.path(names.MEMORY))]
        return "\n".join([*pages, self.identities(), texts_of(self.identities("evidence.jsonl"))])


def perfect(
    notes: list[Note], fold: range, first_of: dict[tuple[str, int], int], shown: dict[tuple[str, int], str]
) -> list[dict[str, object]]:
    """The operations of an agent that knows what each note means: an entry at a time, so that none spoils another. `shown`: the
    wordings that it gave, with the numbers of all notes."""
    rows: list[dict[str, object]] = []
    for number in fold:
        note = notes[number]
        key = (note.item, note.version)
        if note.kind == "noise":
            rows.append({"do": "retire", "entries": [number], "why": "a status report"})
        if note.kind not in ("lesson", "subject"):
            continue
        rows += [{"do": "identity", "entries": [number]}, {"do": "apart", "entries": [number]}]
        if (first := first_of.setdefault(key, number)) != number:
            text = shown[key] = with_numbers(shown.get(key, notes[first].text), note.text)
            rows.append({"do": "same", "entries": [first, number], "text": text})
        older = [first_of[note.item, version] for version in range(1, note.version) if (note.item, version) in first_of]
        rows += [{"do": "newer", "entries": [one, first_of[key]]} for one in older]
    return rows


def with_numbers(text: str, other: str) -> str:
    """A wording, and behind it the numbers of another one that it lacks."""
    missing = [word.strip(",.;:()`") for word in other.split() if words_of(word).numbers - words_of(text).terms]
    return f"{text} ({', '.join(missing)})" if missing else text


# ---- one case


def measure(case: Case) -> Figures:
    """What the curator makes of one stream, and what the baselines make of it."""
    corpus = load(case.half)
    notes = streams.stream(corpus, case.size, case.seed, case.words)
    judge = Judge(corpus, notes, reworded=case.reworded)
    with tempfile.TemporaryDirectory(prefix="memory-quality-") as folder:
        house = House(Path(folder), "mission", corpus.project_names())
        seconds = house.curate(notes, case.fold, agent=case.agent)
        found = judged(judge, house)
    return {**found, "seconds": seconds, **others(judge)}


def judged(judge: Judge, house: House) -> Figures:
    """The figures of the pages of a mission."""
    summary, memory = house.text(house.layout.path(names.SUMMARY)), house.text(house.layout.path(names.MEMORY))
    short, page = judge.sheet(summary), judge.sheet(memory)
    risen, kept = house.risen(), texts_of(house.text(house.layout.path(names.ARCHIVE)))
    return {
        "summary": judge.recall(short.current()),
        "MEMORY": judge.known(page.anywhere()),
        "decisions": judge.decisions(page.current()),
        "decisions in summary": judge.decisions(short.current()),
        "duplicates": judge.duplicates(short),
        "stale": judge.stale(short) + judge.stale(page),
        "contradictory": judge.contradictory(short) + judge.contradictory(page),
        "noise": judge.noise_lines(short),
        "noise in MEMORY": judge.noise_lines(page),
        "attacks": len(judge.attacks(risen)),
        "secrets": len(judge.secrets(risen)),
        "attacks in archive": len(judge.attacks(kept)),
        "secrets in archive": len(judge.secrets(kept)),
        "lines": len([line for line in summary.split("\n") if line]),
        "tokens": counter()[1](summary),
    }


def others(judge: Judge) -> Figures:
    """Recall of what the curator is compared with."""
    texts = {
        "last": baselines.last(judge.notes, tagged=False),
        "last tagged": baselines.last(judge.notes, tagged=True),
        "frequent": baselines.frequent(judge.notes),
        "TF-IDF": baselines.clusters(judge.notes),
    }
    found = {name: judge.recall(judge.sheet(text).current()) for name, text in texts.items()}
    return {**found, "oracle": judge.recall({group.key for group in lay_out(judge.groups())})}


# ---- probes: streams of one kind, small enough for MEMORY.md to have room for all


def probe(half: str, seed: int, details: bool = False) -> Figures:
    """Near misses kept apart, changes followed, and what the gate stops, as shares and counts."""
    corpus = load(half)
    found: Figures = {}
    with tempfile.TemporaryDirectory(prefix="memory-quality-") as folder:
        judge, house = curated(corpus, streams.pairs(corpus, seed), Path(folder) / "pairs")
        held = judge.sheet(house.text(house.layout.path(names.MEMORY))).anywhere()
        apart = [
            (one.id, (one.id, 0) in held and (two.id, 0) in held)
            for one, two in zip(*[iter(corpus.twins)] * 2, strict=True)
        ]
        found["near misses apart"] = statistics.mean(kept for _, kept in apart)
        judge, house = curated(corpus, streams.changes(corpus, seed), Path(folder) / "changes")
        short, page = (
            judge.sheet(house.text(path))
            for path in (house.layout.path(names.SUMMARY), house.layout.path(names.MEMORY))
        )
        current = {(one.id, judge.current[one.id]) for one in corpus.subjects}
        found["current versions in MEMORY"] = len(current & page.current()) / len(current)
        found["stale lines"] = judge.stale(short) + judge.stale(page)
        judge, house = curated(corpus, streams.gate(corpus, seed), Path(folder) / "gate")
        memory = house.text(house.layout.path(names.MEMORY))
        risen, kept = house.risen(), texts_of(house.text(house.layout.path(names.ARCHIVE)))
        attacks, secrets, gated = judge.attacks(risen), judge.secrets(risen), judge.gated(memory)
        found["attacks above raw"], found["secrets above raw"] = len(attacks), len(secrets)
        found["attacks in archive"], found["secrets in archive"] = len(judge.attacks(kept)), len(judge.secrets(kept))
        found["look-alikes gated"] = sum((tag, text) in corpus.lookalikes for tag, text in tagged(gated, corpus))
        found["order-like notes gated"] = len(gated) - found["look-alikes gated"]
    if details:
        merged = [name for name, kept in apart if not kept]
        for name, some in (("merged", merged), ("attack", attacks), ("secret", secrets), ("gated", gated)):
            for one in some:
                print(f"  {half} {seed} {name}: {one}", flush=True)
    return found


def tagged(texts: list[str], corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Honest notes with their tags, as the corpus has them."""
    return ((tag, text) for tag, text in corpus.lookalikes + corpus.orders if text in texts)


def curated(corpus: Corpus, notes: list[Note], folder: Path) -> tuple[Judge, House]:
    """The judge, and a mission that curated these notes in folds of 20."""
    house = House(folder, "mission", corpus.project_names())
    house.curate(notes, 20)
    return Judge(corpus, notes), house


# ---- identity


def identity(half: str, seed: int, words: str, details: bool = False) -> Figures:
    """Precision and recall of what graduates over missions that share the folder of the identities, with an agent that lets each
    lesson go that may."""
    corpus = load(half)
    names = corpus.project_names()
    with tempfile.TemporaryDirectory(prefix="memory-quality-") as folder:
        missions = []
        for number in range(MISSIONS):
            notes = streams.stream(corpus, MISSION_SIZE, 100 * seed + number, words, only_lessons=True)
            house = House(Path(folder), f"mission-{number}", names)
            house.curate(notes, 20, agent=True)
            missions.append(notes)
        judge = Judge(corpus, [note for notes in missions for note in notes])
        sheet = judge.sheet(re.sub("^(#.*|---)$", "", house.identities(), flags=re.M))
    must, may = deserving(corpus, missions)
    held = [{name for name, version in keys if not version} for keys in sheet.held]
    right = sum(bool(keys & may) for keys in held)
    if details:
        for (_, line), keys in zip(sheet.lines, held, strict=True):
            if not keys & may:
                print(f"  {half} {seed} {words} does not belong: {line}", flush=True)
        print(f"  {half} {seed} {words} missing: {sorted(must - set().union(*held))}", flush=True)
    recall = min(len(must & set().union(*held)) / min(len(must), IDENTITY_LINES), 1.0) if must else 1.0
    return {"precision": right / len(held) if held else 0.0, "recall": recall, "lines": len(held), "wanted": len(must)}


def deserving(corpus: Corpus, missions: list[list[Note]]) -> tuple[set[str], set[str]]:
    """The lessons that must graduate (a trick of workers of two features or missions, a failure in two missions), and those that
    may: noted by two runs, and not only about this project."""
    must, may = set(), set()
    for lesson in corpus.lessons + corpus.twins:
        said = [(number, note) for number, notes in enumerate(missions) for note in notes if note.item == lesson.id]
        if lesson.is_local or len({(number, note.run) for number, note in said}) < 2:
            continue
        may.add(lesson.id)
        workers = {(number, note.feature) for number, note in said if note.role == "worker"}
        if lesson.tag == "TRICK" and len(workers) > 1:
            must.add(lesson.id)
        if lesson.tag in ("FAIL", "AVOID") and len({number for number, _ in said}) > 1:
            must.add(lesson.id)
    return must, may


# ---- tables

COLUMNS = (
    *("summary", "TF-IDF", "oracle", "last", "last tagged", "frequent", "MEMORY", "decisions", "decisions in summary"),
    *("duplicates", "stale", "contradictory", "noise", "noise in MEMORY", "attacks", "secrets", "attacks in archive"),
    *("secrets in archive", "lines", "tokens", "seconds"),
)
SHARES = frozenset(COLUMNS[:9])


def mean(rows: list[Figures]) -> Figures:
    """The mean of each figure."""
    return {name: statistics.mean(row[name] for row in rows) for name in rows[0]}


def shown(name: str, value: float) -> str:
    """A figure as tables have it."""
    return f"{value:.2f}" if name in SHARES else f"{value:.1f}".removesuffix(".0")


def table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    every = [list(heads), ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in every)


def report(args: argparse.Namespace) -> Iterator[str]:
    """The tables, each as soon as it is measured."""
    halves = list(HALVES) if args.half == "both" else [args.half]
    with multiprocessing.get_context("fork").Pool(args.jobs) as pool:
        for part, made in zip(PARTS, (of_streams, of_probes, of_identity, of_families), strict=True):
            if part in args.parts:
                yield made(args, halves, pool)


def of_streams(args: argparse.Namespace, halves: list[str], pool: Pool) -> str:
    """The curator and the baselines, over all streams."""
    keys = [(h, s, w, f) for h in halves for s in args.sizes for w in args.words for f in args.folds]
    results = list(
        pool.imap(measure, [Case(*key, seed, args.reworded, args.agent) for key in keys for seed in args.seeds])
    )
    rows = []
    for number, (half, size, words, fold) in enumerate(keys):
        found = mean(results[number * len(args.seeds) : (number + 1) * len(args.seeds)])
        rows.append([half, str(size), words, str(fold or "all"), *(shown(name, found[name]) for name in COLUMNS)])
    return table(("half", "entries", "words", "fold", *COLUMNS), rows)


def of_probes(args: argparse.Namespace, halves: list[str], pool: Pool) -> str:
    """The probes, by half."""
    asked = [(half, seed, args.details) for half in halves for seed in args.seeds]
    results = pool.starmap(probe, asked)
    found = {half: mean([one for key, one in zip(asked, results, strict=True) if key[0] == half]) for half in halves}
    return table(("probe", *halves), [[name, *(f"{found[half][name]:.2f}" for half in halves)] for name in results[0]])


def of_identity(args: argparse.Namespace, halves: list[str], pool: Pool) -> str:
    """What graduates, by half and wordings."""
    asked = [(half, seed, words, args.details) for half in halves for words in args.words for seed in args.seeds]
    results = pool.starmap(identity, asked)
    rows = []
    for number in range(0, len(asked), len(args.seeds)):
        found = mean(results[number : number + len(args.seeds)])
        rows.append([asked[number][0], asked[number][2], *(f"{value:.2f}" for value in found.values())])
    return table(("identity", "words", *results[0]), rows)


def of_families(args: argparse.Namespace, _halves: list[str], pool: Pool) -> str:
    """Parallel facts and corrections: lost, missing and strengthened, by the families of a mission."""
    every = families.load()
    some = [every[first : first + TOGETHER] for first in range(0, len(every) - TOGETHER + 1, TOGETHER)]
    kinds = {"each family alone": [[one] for one in every], f"{TOGETHER} families": some, f"all {len(every)}": [every]}
    rows, ways = [], ""
    for name, missions in kinds.items():
        found = pool.starmap(remembered, [(mission, seed) for mission in missions for seed in args.seeds])
        for key in found[0]:
            sums = map(sum, zip(*(one[key].counts() for one in found), strict=True))
            rows.append([name, key, *(f"{one / len(args.seeds):.1f}".removesuffix(".0") for one in sums)])
        ways = ways or families.ways(one["memory"] for one in found[:: len(args.seeds)])
    return table(("families", "", "facts lost", "corrections missing", "strengthened"), rows) + f"\nReplaced: {ways}\n"


def remembered(mission: list[Family], seed: int) -> dict[str, Verdict]:
    """What the memory and its alternatives make of some families. Raises AssertionError for a fact that is not in the archive."""
    said = families.notes(mission, seed)
    with tempfile.TemporaryDirectory(prefix="memory-quality-") as folder:
        house = House(Path(folder), "mission", [])
        house.curate(said, 20)
        memory, kept = (house.text(house.layout.path(name)) for name in (names.MEMORY, names.ARCHIVE))
    found = {"memory": families.judged(mission, memory.split("\n"))}
    assert not [fact for fact in found["memory"].lost if fact not in texts_of(kept)]
    return found | {name: families.judged(mission, lines) for name, lines in families.simple(said).items()}


def thresholds(sizes: list[int], seeds: list[int]) -> str:
    """Recall of the TF-IDF baseline on the tuned half, by its threshold: where `baselines.THRESHOLD` comes from."""
    corpus, rows = load("tuned"), []
    for percent in range(12, 44, 2):
        row = [f"{percent / 100:.2f}"]
        for words, size in itertools.product(OF_CLASS, sizes):
            judges = [Judge(corpus, streams.stream(corpus, size, seed, words)) for seed in seeds]
            pages = [(judge, baselines.clusters(judge.notes, percent / 100)) for judge in judges]
            row.append(f"{statistics.mean(judge.recall(judge.sheet(text).current()) for judge, text in pages):.2f}")
        rows.append(row)
    return table(("threshold", *(f"{words} {size}" for words, size in itertools.product(OF_CLASS, sizes))), rows)


def write(path: Path, text: str) -> None:
    """Put the text between two marks of a page that has them."""
    parts = path.read_text(encoding="utf-8").split(MARK)
    if len(parts) != 3:
        raise SystemExit(f"{path} needs two lines {MARK}; the tables go between them.")
    path.write_text(f"{parts[0]}{MARK}\n\n{text}\n{MARK}{parts[2]}", encoding="utf-8")


def arguments() -> argparse.Namespace:
    """What was asked for."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description="How good the memory is.")
    parser.add_argument("--half", choices=[*HALVES, *FRESH, "both"], default="tuned")
    parser.add_argument("--sizes", type=numbers, default=list(SIZES))
    parser.add_argument("--seeds", type=numbers, default=list(SEEDS))
    parser.add_argument("--folds", type=numbers, default=list(FOLDS))
    parser.add_argument("--words", type=lambda text: text.split(","), default=list(OF_CLASS))
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--reworded", action="store_true")
    parser.add_argument("--agent", action="store_true", help="one that knows what each note means is asked, too")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--details", action="store_true")
    parser.add_argument("--threshold", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    if args.quick:
        args.sizes, args.seeds = [50, 300], [1]
    return args


def main() -> None:
    """Measure, and print or write the tables."""
    args = arguments()
    if args.threshold:
        print(thresholds(args.sizes, args.seeds))
        return
    if args.speed:
        heads = ("archived", "new", "ms", "starts of Python", "aim in ms", f"MB (aim: {speed.MOST_MEMORY})")
        print(table(heads, list(speed.rows())))
        return
    found = []
    for text in report(args):
        print(text, flush=True)
        found.append(text)
    name = "tokens are o200k's" if counter()[0] == "o200k" else "tokens are estimated by classes of characters"
    print(name)
    if args.write:
        write(args.write, "\n".join(found))


if __name__ == "__main__":
    main()
