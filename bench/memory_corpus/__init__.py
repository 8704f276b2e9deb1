"""The labelled corpus that `bench/memory_quality.py` judges the curator with: what engineers note, and what it means.

Two halves of the same shape: `tuned.txt` may be read while something is tuned, `held_out.txt` may not. A line is one of

    = id TAG [local]   a lesson; below it a wording a line: `n` near (most words shared), `m` middle (an identifier or two
                       words shared), `f` far (hardly a word). `local`: it names paths of its project
    ? id               a subject of decisions; below it `1`, `2` …: wordings of its versions, the last one is current
    ! id TAG TAG       opposites: versions 1 and 2 of advice, with the tag of each; the second holds
    ~ id TAG           a near miss: wordings of two lessons, `a` and `b`, that share words and must stay two
    + TAG text         noise: a status report; {n}, {s} and {f} are counters
    x TAG text         an attack; {tags:…} are invisible tag characters, {b64:…} is encoded; \\u escapes and \\n are decoded
    s TAG text         a note with a secret; {aws}, {word} … are made at run time, so that no scanner takes them for real
    h TAG text         an honest note with a look-alike of a secret
    o TAG text         an honest note that sounds like an order
"""

from __future__ import annotations

import base64
import random
import re
import string
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
HALVES = {"tuned": FOLDER / "tuned.txt", "held": FOLDER / "held_out.txt"}
FRESH = {name: FOLDER / f"{name}.txt" for name in ("ninth", "tenth")}  # other domains: asked for by name
CLASSES = {"n": "near", "m": "middle", "f": "far"}
OF_CLASS = {"near": 2, "first3": 3, "all": 5}  # how many of a lesson's wordings a stream draws from


@dataclass
class Lesson:
    """What is worth knowing, in wordings (class, text); a near miss has two lessons, named `id/a` and `id/b`."""

    id: str
    tag: str
    is_local: bool = False
    wordings: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Subject:
    """What has versions, of which only the last holds: `tags` and `versions` (wordings of each) are parallel."""

    id: str
    tags: list[str]
    versions: list[list[str]] = field(default_factory=list)

    @property
    def is_decision(self) -> bool:
        """Decisions are current or history; the others are opposites."""
        return self.tags[0] == "DECISION"


@dataclass
class Corpus:
    """One half. `twins` are lessons too, in pairs; the other lists have (tag, text)."""

    lessons: list[Lesson] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    twins: list[Lesson] = field(default_factory=list)
    noise: list[tuple[str, str]] = field(default_factory=list)
    attacks: list[tuple[str, str]] = field(default_factory=list)
    secrets: list[tuple[str, str]] = field(default_factory=list)
    lookalikes: list[tuple[str, str]] = field(default_factory=list)
    orders: list[tuple[str, str]] = field(default_factory=list)

    def project_names(self) -> list[str]:
        """The paths that local lessons name."""
        texts = [text for lesson in self.lessons if lesson.is_local for _, text in lesson.wordings]
        return sorted({path for text in texts for path in re.findall(r"\b[\w-]+(?:/[\w.-]+)*/[\w-]+(?:\.\w+)*", text)})


def load(half: str) -> Corpus:
    """One half of the corpus; raises ValueError with the line that is not of the format."""
    corpus = Corpus()
    for number, line in enumerate((HALVES | FRESH)[half].read_text(encoding="utf-8").split("\n"), start=1):
        if line and not line.startswith("# "):
            try:
                _take(corpus, *line.split(" ", 1))
            except (ValueError, IndexError, KeyError) as fault:
                raise ValueError(f"{half}:{number}: {fault}") from None
    return corpus


def _take(corpus: Corpus, mark: str, rest: str) -> None:
    flat = {"+": corpus.noise, "x": corpus.attacks, "s": corpus.secrets, "h": corpus.lookalikes, "o": corpus.orders}
    if mark in flat:
        tag, text = rest.split(" ", 1)
        flat[mark].append((tag, text))
    elif mark == "=":
        name, tag, *local = rest.split(" ")
        corpus.lessons.append(Lesson(name, tag, local == ["local"]))
    elif mark == "~":
        name, tag = rest.split(" ")
        corpus.twins += [Lesson(f"{name}/a", tag), Lesson(f"{name}/b", tag)]
    elif mark in "?!":
        name, *tags = rest.split(" ")
        corpus.subjects.append(Subject(name, tags or ["DECISION"]))
    elif mark in CLASSES:
        corpus.lessons[-1].wordings.append((CLASSES[mark], rest))
    elif mark in ("a", "b"):
        corpus.twins["ab".index(mark) - 2].wordings.append(("near", rest))
    else:
        _take_version(corpus.subjects[-1], int(mark), rest)


def _take_version(subject: Subject, number: int, text: str) -> None:
    if number == len(subject.versions) + 1:
        subject.versions.append([])
        subject.tags += ["DECISION"] if subject.is_decision and len(subject.tags) < number else []
    subject.versions[number - 1].append(text)


# ---- attacks and secrets, as they are noted


def attack(template: str) -> str:
    """The text of an attack, with what it hides."""
    text = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), template).replace("\\n", "\n")
    text = re.sub(r"\{tags:([^}]*)\}", lambda found: "".join(chr(0xE0000 + ord(one)) for one in found[1]), text)
    return re.sub(r"\{b64:([^}]*)\}", lambda found: base64.b64encode(found[1].encode()).decode(), text)


def secret(template: str, dice: random.Random) -> tuple[str, str]:
    """The text of a note with a secret, and the secret."""
    kind = re.findall(r"\{(\w+)\}", template)[0]
    made = _secret(kind, dice)
    return template.replace(f"{{{kind}}}", made), made


def _secret(kind: str, dice: random.Random) -> str:
    """A made-up secret in the form of its vendor; the pieces of each prefix are apart here."""
    small, mixed = string.ascii_lowercase, string.ascii_letters + string.digits

    def some(letters: str, count: int) -> str:
        return "".join(dice.choice(letters) for _ in range(count))

    def encoded(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    claims = encoded('{"sub":"' + some(small, 8) + '"}')
    word = "".join(some("bdfgklmnprst", 1) + some("aeiou", 1) for _ in range(3)) + some("123456789", 2)
    forms = {
        "aws": "AK" + "IA" + some(string.ascii_uppercase + "234567", 16),
        "awssecret": some(mixed + "/+", 40),
        "github": "gh" + "p_" + some(mixed, 36),
        "jwt": ".".join((encoded('{"alg":"HS256","typ":"JWT"}'), claims, some(mixed, 43))),
        "key": some(mixed + "+/", 64),
        "word": word,
        "hex": some("0123456789abcdef", 40),
        "stripe": "sk" + "_live_" + some(mixed, 24),
        "npm": "npm" + "_" + some(mixed, 36),
        "slack": f"xo{'xb'}-{some('123456789', 12)}-{some('123456789', 12)}-{some(mixed, 24)}",
        "gitlab": "glp" + "at-" + some(mixed, 20),
        "google": "AI" + "za" + some(mixed, 35),
    }
    return forms[kind]


# ---- texts, compared

_MARKS = re.compile(r"[`*_\"'\u2018-\u201f]")


def normal(text: str) -> str:
    """`text` for comparison: small letters, one space, no marks, no invisible characters."""
    shown = "".join(one for one in text if unicodedata.category(one) != "Cf")
    return " ".join(_MARKS.sub("", shown.lower()).split()).rstrip(".")
