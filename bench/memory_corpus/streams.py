"""What a mission notes: a stream of entries drawn from one half of the corpus, the same for the same seed.

The core of the lessons recurs as a Zipf distribution says, the rest seldom or once, over runs of several roles and features, in
any of their wordings. Versions of a subject come in their order. Noise, attacks, secrets and honest look-alikes come in between.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass

from harness.state import raw
from memory_corpus import OF_CLASS, Corpus, Lesson, Subject, attack, secret

ZIPF = 0.8
CORE = {"TRICK": 13, "AVOID": 6, "FAIL": 5, "CONTEXT": 2}  # how many lessons of a tag recur
SINGLE, SELDOM = 6, 0.2  # so many of the others are noted once; the rest have this part of the core's smallest weight
MENTIONS = 2  # of a subject, at least, before a stream has more subjects
SHARES = {"subjects": 0.11, "twins": 0.06, "noise": 0.32}  # of all entries; lessons have the rest
ROLES = (("worker", 70), ("validator", 15), ("planner", 10), ("person", 5))
BY_HAND = 0.3  # attacks that are appended to raw.md as a bare line
BEGIN = datetime.datetime(2026, 1, 5, 8, tzinfo=datetime.UTC)


@dataclass
class Note:
    """An entry and what it means: `kind` is lesson, subject, noise, attack, secret or honest; `version` from 1 for a subject;
    `run` counts the runs, each of one role on one feature; `hidden` is the secret. An empty role is a bare line."""

    kind: str
    item: str
    tag: str
    text: str
    version: int = 0
    hidden: str = ""
    run: int = 0
    role: str = ""
    feature: str = "-"
    at: str = ""

    def line(self) -> bytes:
        """The entry as raw.md has it."""
        text = raw.render(self.at, self.role, self.feature, self.tag, self.text) if self.role else self.text
        return text.replace("\n", " ").encode() + b"\n"


def stream(corpus: Corpus, size: int, seed: int, words: str, *, only_lessons: bool = False) -> list[Note]:
    """So many notes in the order of their time; `words` is a key of OF_CLASS. `only_lessons`: no attack, secret or opposite."""
    dice = random.Random(f"{seed} {size}")
    rare: list[Note] = []
    if not only_lessons:
        most = max(2, size // 25)
        rare = [*_attacks(corpus, dice)[:most], *_secrets(corpus, dice)[:most], *_honest(corpus, dice)[:most]]
    subjects = [one for one in corpus.subjects if one.is_decision or not only_lessons]
    timed = [(dice.random(), note) for note in rare]
    timed += _versions(subjects, round(SHARES["subjects"] * size), dice)
    twins = dice.choices(corpus.twins, k=round(SHARES["twins"] * size))
    timed += [(dice.random(), note) for note in _said(twins, words, dice)]
    timed += [(dice.random(), note) for note in _noise(corpus, round(SHARES["noise"] * size), dice)]
    rest = size - len(timed)
    timed += [(dice.random(), note) for note in _recurring(corpus.lessons, rest, words, dice)]
    timed.sort(key=lambda pair: pair[0])
    return _in_runs([note for _, note in timed], dice)


def _recurring(lessons: list[Lesson], count: int, words: str, dice: random.Random) -> list[Note]:
    """So many notes of lessons: the core as Zipf says, the others seldom, and a few of those once."""
    order = dice.sample(lessons, len(lessons))
    core = [one for tag, most in CORE.items() for one in [lesson for lesson in order if lesson.tag == tag][:most]]
    core = dice.sample(core, len(core))
    others = [one for one in order if one not in core]
    once, seldom = others[: min(SINGLE, count // 10)], others[SINGLE:]
    weights = [1 / rank**ZIPF for rank in range(1, len(core) + 1)]
    weights += [SELDOM * weights[-1]] * len(seldom)
    return _said(once + dice.choices(core + seldom, weights, k=count - len(once)), words, dice)


def _said(lessons: list[Lesson], words: str, dice: random.Random) -> list[Note]:
    """A note for each, in one of the wordings that `words` allows."""
    return [Note("lesson", one.id, one.tag, dice.choice(one.wordings[: OF_CLASS[words]])[1]) for one in lessons]


def _versions(subjects: list[Subject], count: int, dice: random.Random) -> list[tuple[float, Note]]:
    """Notes on subjects with their times; each is noted in its first version before the last."""
    found = []
    some = dice.sample(subjects, min(len(subjects), max(1, count // MENTIONS)))
    each = some * MENTIONS + [dice.choice(some) for _ in range(max(0, count - MENTIONS * len(some)))]
    for subject in some:
        times = sorted(dice.random() for one in each if one is subject)
        last = len(subject.versions)
        cuts = sorted(dice.uniform(0.1, 0.85) for _ in range(last - 1))
        for at in times:
            version = 1 + sum(at > cut for cut in cuts)
            version = 1 if at == times[0] else last if at == times[-1] else version
            text = dice.choice(subject.versions[version - 1])
            found.append((at, Note("subject", subject.id, subject.tags[version - 1], text, version)))
    return found


def _noise(corpus: Corpus, count: int, dice: random.Random) -> list[Note]:
    notes = []
    for _ in range(count):
        tag, text = dice.choice(corpus.noise)
        for mark, most in (("{n}", 99), ("{s}", 59), ("{f}", 60)):
            while mark in text:
                text = text.replace(mark, f"{dice.randint(2, most):0{3 if mark == '{f}' else 1}}", 1)
        notes.append(Note("noise", text, tag, text))
    return notes


def _attacks(corpus: Corpus, dice: random.Random) -> list[Note]:
    notes = [Note("attack", text, tag, attack(text)) for tag, text in corpus.attacks]
    for note in notes:
        note.run = -1 if dice.random() < BY_HAND else 0
    return dice.sample(notes, len(notes))


def _secrets(corpus: Corpus, dice: random.Random) -> list[Note]:
    made = [(tag, text, *secret(text, dice)) for tag, text in corpus.secrets]
    notes = [Note("secret", template, tag, text, hidden=hidden) for tag, template, text, hidden in made]
    return dice.sample(notes, len(notes))


def _honest(corpus: Corpus, dice: random.Random) -> list[Note]:
    notes = [Note("honest", text, tag, text) for tag, text in corpus.lookalikes + corpus.orders]
    return dice.sample(notes, len(notes))


def _in_runs(notes: list[Note], dice: random.Random) -> list[Note]:
    """The notes with runs of one to four notes, each run's role, feature and time; bare lines belong to no run."""
    features = max(4, len(notes) // 5)
    run, left, role, feature = 0, 0, "", ""
    for number, note in enumerate(notes):
        note.at = (BEGIN + datetime.timedelta(minutes=37 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        if note.run < 0:
            continue
        if not left:
            run, left, feature = run + 1, dice.randint(1, 4), f"F-{dice.randint(1, features):03}"
            role = dice.choices([name for name, _ in ROLES], [share for _, share in ROLES])[0]
        left -= 1
        note.run, note.role, note.feature = run, role, feature
    return notes


# ---- streams of one kind


def pairs(corpus: Corpus, seed: int) -> list[Note]:
    """Every near miss, each of its lessons twice."""
    dice = random.Random(seed)
    notes = [Note("lesson", one.id, one.tag, text) for one in corpus.twins for _, text in one.wordings]
    return _in_runs(dice.sample(notes, len(notes)), dice)


def changes(corpus: Corpus, seed: int) -> list[Note]:
    """Every subject, each version in each of its wordings, in order."""
    dice = random.Random(seed)
    timed = []
    for subject in corpus.subjects:
        said = [(number, text) for number, texts in enumerate(subject.versions, start=1) for text in texts]
        for at, (number, text) in zip(sorted(dice.random() for _ in said), said, strict=True):
            timed.append((at, Note("subject", subject.id, subject.tags[number - 1], text, number)))
    return _in_runs([note for _, note in sorted(timed, key=lambda pair: pair[0])], dice)


def gate(corpus: Corpus, seed: int) -> list[Note]:
    """Every attack, secret, look-alike and order-like note once."""
    dice = random.Random(seed)
    notes = [*_attacks(corpus, dice), *_secrets(corpus, dice), *_honest(corpus, dice)]
    return _in_runs(dice.sample(notes, len(notes)), dice)
