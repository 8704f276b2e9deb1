"""The judge of the memory: its corpus is what it says, its figures are right for pages that are known, and the script runs."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections import Counter
from itertools import chain
from typing import Any

import pytest

from harness.base import redaction
from tests.missions import CHECKOUT

SCRIPT = CHECKOUT / "bench" / "memory_quality.py"
BENCH: Any = runpy.run_path(str(SCRIPT))
CORPORA = {half: BENCH["load"](half) for half in BENCH["HALVES"]}
LEAST = {"lessons": 60, "subjects": 24, "twins": 40, "noise": 60, "attacks": 20, "secrets": 25}
LEAST |= {"lookalikes": 20, "orders": 20}


def wordings() -> list[tuple[str, str]]:
    """(lesson or version of a subject, wording) of both halves."""
    found = []
    for corpus in CORPORA.values():
        found += [(one.id, text) for one in chain(corpus.lessons, corpus.twins) for _, text in one.wordings]
        for subject in corpus.subjects:
            for number, texts in enumerate(subject.versions):
                found += [(f"{subject.id}/{number}", text) for text in texts]
    return found


@pytest.mark.parametrize("part", LEAST)
def test_the_corpus_has_enough_of_each_kind_and_half_of_it_is_held_out(part: str) -> None:
    """Both halves have the same number of everything, so that one may be read while something is tuned."""
    tuned, held = (len(getattr(CORPORA[half], part)) for half in ("tuned", "held"))
    assert tuned == held
    assert tuned + held >= LEAST[part]


def test_a_lesson_has_two_near_two_middle_and_one_far_wording() -> None:
    """A subject has two to four versions in at least two wordings, and so has each side of a near miss."""
    for corpus in CORPORA.values():
        assert {tuple(kind for kind, _ in one.wordings) for one in corpus.lessons} == {
            ("near", "near", "middle", "middle", "far")
        }
        assert {len(one.wordings) for one in corpus.twins} == {2}
        assert {len(one.versions) for one in corpus.subjects} <= {2, 3, 4}
        assert min(len(texts) for one in corpus.subjects for texts in one.versions) >= 2


def test_no_wording_is_there_twice_or_part_of_another() -> None:
    """A line of memory is one lesson's alone, by its text; only `never use X` may have `use X` of the same subject in it."""
    texts = [(item, sys.modules["memory_corpus"].normal(text)) for item, text in wordings()]
    assert [text for text, count in Counter(text for _, text in texts).items() if count > 1] == []
    parts = [(one, two) for one in texts for two in texts if one != two and one[1] in two[1]]
    assert [pair for pair in parts if pair[0][0].split("/")[0] != pair[1][0].split("/")[0]] == []


def test_no_secret_is_written_in_the_corpus() -> None:
    """They are made at run time, the same for the same seed, and masking knows most of them."""
    for path in BENCH["HALVES"].values():
        assert redaction.found(path.read_text()) == []
    gate = BENCH["streams"].gate
    for corpus in CORPORA.values():
        notes = [note for note in gate(corpus, 1) if note.kind == "secret"]
        assert [note.text for note in notes] == [note.text for note in gate(corpus, 1) if note.kind == "secret"]
        assert sum(redaction.mask(note.text) != note.text for note in notes) >= len(notes) / 2


@pytest.mark.parametrize("size", [50, 300])
def test_a_stream_has_its_size_and_versions_come_in_order(size: int) -> None:
    """And it is the same for the same seed."""
    for words in BENCH["OF_CLASS"]:
        notes = BENCH["streams"].stream(CORPORA["tuned"], size, 2, words)
        assert notes == BENCH["streams"].stream(CORPORA["tuned"], size, 2, words)
        assert len(notes) == size
        for item in {note.item for note in notes if note.kind == "subject"}:
            versions = [note.version for note in notes if note.item == item]
            assert versions == sorted(versions)
            assert versions[0] < versions[-1]


def judge_of(size: int) -> Any:
    """The judge of a stream of the tuned half."""
    return BENCH["Judge"](CORPORA["tuned"], BENCH["streams"].stream(CORPORA["tuned"], size, 1, "near"))


def test_perfect_grouping_has_all_that_matters_and_less_has_less() -> None:
    """The oracle is 1.00, an empty page 0.00; every lesson that is taken away lowers it."""
    judge = judge_of(300)
    chosen = [group for group in BENCH["lay_out"](judge.groups()) if group.section != "decisions" and group.value > 1]
    keys = [group.key for group in chosen]
    assert judge.recall(set(keys)) == 1.0
    assert judge.recall(set()) == 0.0
    assert judge.recall({group.key for group in judge.groups()}) == 1.0
    best = max(chosen, key=lambda group: group.value).key
    assert judge.recall(set(keys) - {best}) == 1 - 1 / len(keys)


def test_a_page_is_judged_by_its_texts() -> None:
    """Marks, dates and counts around the words do not matter; what is stale, double, noise or an attack is counted."""
    judge = judge_of(300)
    current, old = (CORPORA["tuned"].subjects[0].versions[at][0] for at in (-1, 0))
    judge.current[CORPORA["tuned"].subjects[0].id] = 3
    lesson = CORPORA["tuned"].lessons[0]
    (_, near), (_, other), *_ = lesson.wordings
    report = next(note.text for note in judge.notes if note.kind == "noise")
    page = f"# Memory\n\n## Lessons\n- **{near.upper()}.**\n- [2026-04-24] {other} (F-001 · 2x)\n- {report} (1x)\n"
    page += f"## Decisions\n- {current}\n- {old}\n## History\n- {old} (superseded by: {current})\n- {old}\n- {report}\n"
    sheet = judge.sheet(page)
    assert (lesson.id, 0) in sheet.current()
    counts = (judge.duplicates(sheet), judge.stale(sheet), judge.contradictory(sheet), judge.noise_lines(sheet))
    assert counts == (1, 1, 1, 1)
    assert judge.stale(judge.sheet(f"## Decisions\n- {current} (was: {old})\n")) == 0
    hostile = next(note for note in judge.notes if note.kind == "attack")
    assert judge.attacks(f"x\n- {hostile.text[:9]}\u200b{hostile.text[9:]}\n") == [hostile.item]
    hidden = next(note for note in judge.notes if note.kind == "secret")
    assert judge.secrets(f"- {hidden.text}\n") == [hidden.item]
    assert judge.secrets(judge.notes[0].text) == []


def test_a_reworded_line_is_recognised_where_that_is_asked_for() -> None:
    """By its words; a line that two lessons might say is neither's."""
    plain = judge_of(50)
    judge = BENCH["Judge"](plain.corpus, plain.notes, reworded=True)
    page = "- before e2e tests, stop whatever dev server listens on port 3000\n- tests of the server\n"
    assert judge.sheet(page).held == [{("e2e-port", 0)}, set()]
    assert plain.sheet(page).held == [set(), set()]


def test_the_script_runs() -> None:
    """One small stream, with its baselines; the oracle is perfect and no baseline is better."""
    words = ["--sizes", "50", "--seeds", "1", "--words", "near", "--folds", "0", "--parts", "streams"]
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=True)
    head, _, row = (line.strip("| ").split(" | ") for line in done.stdout.split("\n")[:3])
    found = dict(zip(head, row, strict=True))
    assert (found["entries"], found["words"], found["oracle"]) == ("50", "near", "1.00")
    assert all(0 <= float(found[name]) <= 1 for name in ("summary", "TF-IDF", "last", "last tagged", "frequent"))


FAMILIES = sys.modules["memory_corpus.families"]


def test_the_families_are_parallel_facts_of_which_half_have_a_correction_in_twelve_ways() -> None:
    """What a correction holds is in it, and what it makes untrue in the fact that it corrects."""
    every = FAMILIES.load()
    corrected = [one for one in every if one.correction]
    assert (len(every), len(corrected), {one.way for one in corrected}) == (60, 30, {*range(1, 13)})
    assert all(2 <= len(one.facts) <= 6 for one in every)
    for one in corrected:
        assert all(part in one.correction for part in one.holds)
        assert any(gone in one.facts[one.corrects] for gone in one.gone)


def test_a_page_of_families_is_judged_by_what_it_loses_misses_and_strengthens() -> None:
    """A fact that is only in the History is lost; an old line that is counted twice is strengthened."""
    one = next(one for one in FAMILIES.load() if one.name == "helper-ports")
    dressed = [f"- [2026-01-01] {fact} (F-001 · 1x)" for fact in [*one.facts, one.correction]]
    assert FAMILIES.judged([one], dressed).counts() == (0, 0, 0)
    assert FAMILIES.judged([one], dressed[:-1]).counts() == (0, 1, 0)
    dressed[0] = dressed[0].replace("1x", "2x")
    dressed[1] = dressed[1].replace(" (", " (superseded by entry 9) (")
    found = FAMILIES.judged([one], dressed)
    assert (found.counts(), found.replaced[8], found.corrections[8]) == ((1, 0, 1), 0, 1)
    assert FAMILIES.judged([one], dressed[1:]).replaced[8] == 1


def test_no_fact_of_a_family_is_lost_no_correction_missing_and_no_old_line_strengthened() -> None:
    """Each family alone, 25 in one mission; beyond the bounds a lost fact is in the archive, or `remembered` raises."""
    every = FAMILIES.load()
    for mission in ([one] for one in every):
        assert BENCH["remembered"](mission, 1)["memory"].counts() == (0, 0, 0), mission
    for mission in (every[:25], every[25:50]):
        assert BENCH["remembered"](mission, 2)["memory"].counts() == (0, 0, 0)
    assert BENCH["remembered"](every, 3)["memory"].counts()[1:] == (0, 0)
