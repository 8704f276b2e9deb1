"""Identity, L4: what a role knows across missions, one `<role>.md` each, and `evidence.jsonl` that says who said it.

The folder is shared by every mission of a person, so writers take `.lock`, and `ledger.json` keeps the digest of each file
as the harness wrote it: what differs from it was changed by somebody else. A line `- [2026-04-24] text (missions: a, b ·
3x)` is an item of ours; every other line was written by a person and is kept word for word.
"""

from __future__ import annotations

import os
import re

from harness.base import schema
from harness.base.errors import Busy
from harness.base.record import Record
from harness.memory import pages, similarity
from harness.memory.pages import Item, Page
from harness.store import files, json_lines
from harness.store.layout import evidence_file, identity_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from typing import Any

LINES = 60
MISSIONS = "missions: "
LOCK_SECONDS = 10.0
FAILURES = ("FAIL", "AVOID")
README = "README.md"

# Names that every project has: saying them gives nothing of this project away.
COMMON_FILES = re.compile(
    r"makefile|dockerfile|readme\.md|agents\.md|spec\.md|package(-lock)?\.json|tsconfig\.json|pyproject\.toml|setup\.py"
    r"|conftest\.py|requirements\.txt|cargo\.(toml|lock)|go\.(mod|sum)|(yarn|uv)\.lock|pnpm-lock\.yaml|\.env"
    r"|\.(git|docker)ignore|docker-compose\.ya?ml"
)
_IDS = re.compile(r"\b(?:F|VAL|ISS|ISSUE|FEAT|FEATURE)-[A-Za-z0-9-]*[0-9]\b")
_HOME = re.compile(r"(?:^|[\s\"'`(=:])/(?:home|Users|root|mnt|srv|var/folders)/")
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.]{0,40}\b(?:previous|prior|above|earlier|preceding|instructions?)\b"
    r"|\b(?:you (?:must|shall|are now|have to)|from now on|new instructions?|system prompt|developer message)\b"
    r"|\b(?:as an ai|dear (?:agent|assistant|model)|(?:agent|assistant|model)s?\s*:)|<\s*/?\s*(?:system|assistant|user)\b",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"AKIA[0-9A-Z]{12,}|\bgh[pousr]_\w{16,}|github_pat_\w{16,}|\bsk-[\w-]{16,}|xox[abprs]-[\w-]{8,}|\bAIza[\w-]{20,}"
    r"|-----BEGIN|\beyJ[\w-]{10,}\.|://[^/\s:@]+:[^/\s@]+@|\bglpat-[\w-]{10,}"
    r"|(?i:\b\w*(?:password|passwd|secret|token|api[_-]?key|bearer)\w*\s*(?:[:=]|\bis\b(?=\s+\S*[0-9]))\s*[\"']?[^\s\"'$<]{6,})"
    r"|\b(?=[A-Za-z0-9+/_-]*[0-9])(?=[A-Za-z0-9+/_-]*[A-Za-z])[A-Za-z0-9+_-]{32,}"
)
_ROLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Evidence(Record):
    """Who said what: sequence number `seq` of `mission`, by `role` on `feature`, folded by `run`.

    `key` is free for grouping; "" where nobody grouped it.
    """

    mission: str
    feature: str
    run: str
    seq: int
    role: str
    at: str
    tag: str
    text: str
    key: str = ""


class Graduation(Record):
    """A note that goes from a mission to the identity of `role`; `count` voices in `missions` when it was planned."""

    role: str
    text: str
    tag: str
    missions: list[str]
    count: int


# ---- what may go there


def is_role(name: str) -> bool:
    """Whether `name` can name an identity file of its own."""
    return bool(_ROLE.fullmatch(name)) and name.casefold() + ".md" != README.casefold()


def may_travel(text: str, project_names: Iterable[str]) -> bool:
    """Whether a note may leave its mission: no path or id of this project, no order to its reader, no secret.

    `project_names` are paths of the project's files relative to its folder, and whatever else is its own.
    """
    return not (
        _IDS.search(text) or _HOME.search(text) or _ORDER.search(text) or _SECRET.search(text)
    ) and not names_project(text, project_names)


def own_names(project_names: Iterable[str]) -> frozenset[str]:
    """Lower-case paths, file names and folders of the project, without those that every project has."""
    found: set[str] = set()
    for name in project_names:
        path = name.lower().strip("/")
        found.add(path)
        found.add(path.rpartition("/")[2])
        found.add(path.rpartition(".")[0].replace("/", "."))
        while "/" in path:
            path = path.rpartition("/")[0]
            found.add(path + "/")
    return frozenset(name for name in found if name and not COMMON_FILES.fullmatch(name))


def names_project(text: str, project_names: Iterable[str]) -> bool:
    """Whether a word of `text` is a path of the project, or a file name of its that is no plain word."""
    own = project_names if isinstance(project_names, frozenset) else own_names(project_names)
    for word in re.findall(r"[^\s`\"'(),;<>|=]+", text.lower()):
        path = word.rstrip(".:!?").removeprefix("./")
        if "/" in path and "://" not in path:
            if path.strip("/") in own or path.partition("/")[0] + "/" in own:
                return True
        elif path in own and re.search(r"[^a-z]", path):
            return True
    return False


# ---- reading


def text(folder: str, role: str) -> str:
    """The identity of a role as it stands; "" where there is none yet."""
    return files.read_text(identity_file(folder, role)) or ""


def texts(folder: str) -> dict[str, str]:
    """Every role's identity, by role."""
    roles = [name.removesuffix(".md") for name in files.names(folder) if name.endswith(".md") and name != README]
    return {role: text(folder, role) for role in roles}


def evidence(folder: str) -> list[Evidence]:
    """All evidence in file order; one (mission, seq) counts once, a torn last line not at all.

    Raises BrokenFile with the line that is no evidence.
    """
    return parse_evidence(files.read(evidence_file(folder)) or b"", evidence_file(folder))


def parse_evidence(data: bytes, path: str) -> list[Evidence]:
    """The evidence in the whole lines of `data`; see `evidence`."""
    import jsonlines  # here, because it costs 20 ms and most runs of a mission need no evidence

    found: dict[tuple[str, int], Evidence] = {}
    remedy = "Take that line out; evidence.jsonl holds one JSON object a line."

    def take(row: Any) -> None:
        one = schema.record(Evidence, row, "a mission leaves")
        found.setdefault((one.mission, one.seq), one)

    def read(line: bytes) -> Any:
        return jsonlines.Reader([line.decode("utf-8")]).read(type=dict)

    json_lines.parse(data, path, take, "no evidence", remedy, read)
    return list(found.values())


def render_evidence(said: Iterable[Evidence]) -> bytes:
    """The lines of evidence.jsonl."""
    return b"".join(files.dump_json(one.asdict()) for one in said)


def parse(content: str) -> Page:
    """A role's identity as a page; its items stand before the first `## ` heading."""
    return pages.parse_page(content, ("",), MISSIONS)


def render(page: Page) -> str:
    """The text of a role's identity."""
    return pages.render_page(page, MISSIONS)


# ---- writing


def record(folder: str, said: list[Evidence], graduations: list[Graduation], today: str) -> list[str]:
    """Add evidence that is not there yet, and let `graduations` into the identities; returns the names that changed.

    Doing it twice changes nothing. Raises Busy where another mission holds the folder for LOCK_SECONDS.
    """
    if not said and not graduations:
        return []
    with _locked(folder):
        known = evidence(folder)
        seen = {(one.mission, one.seq) for one in known}
        fresh = [one for one in said if (one.mission, one.seq) not in seen]
        contents: dict[str, bytes] = {}
        if fresh:
            contents[evidence_file(folder)] = render_evidence(known + fresh)
        for role in dict.fromkeys(one.role for one in graduations):
            mine = [one for one in graduations if one.role == role]
            before = text(folder, role)
            after = graduate(before, role, mine, known + fresh, today, identity_file(folder, role))
            if after != before:
                contents[identity_file(folder, role)] = after.encode()
        _write(folder, contents)
    return [os.path.basename(path) for path in contents]


def graduate(
    content: str, role: str, graduations: list[Graduation], known: list[Evidence], today: str, path: str
) -> str:
    """The text of a role's identity with these graduations in it, counted over `known`, within LINES."""
    page = parse(content or f"# {role}\n")
    index = ItemIndex(page.items(""))
    new: list[Item] = []
    touched: list[Item] = []
    for one in graduations:
        shown = shown_text(one.tag, one.text)
        item = index.find(shown)
        if item is None:
            item = Item(date=today, text=shown, count=0)
            new.append(item)
            index.add(item)
        touched.append(item)
    voices = count_voices(index, known)
    for item in touched:
        _count(item, voices.get(id(item), []), today)
    if new:
        pages.add_items(page.sections[0], [item for item in new if item.count])
    pages.fit(page, LINES, lambda _title, item: (item.count, item.date), path)
    return render(page)


def shown_text(tag: str, said: str) -> str:
    """A note as an identity shows it: a failure is something to avoid."""
    return pages.AVOID_MARK + said if tag in FAILURES else said


class ItemIndex:
    """Items of an identity, found by what they say."""

    def __init__(self, items: list[Item]) -> None:
        self.items: list[Item] = []
        self.avoid, self.other = similarity.Index(), similarity.Index()
        self.numbers: dict[tuple[bool, int], Item] = {}
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        """Take an item in."""
        self.items.append(item)
        is_avoid = item.text.startswith(pages.AVOID_MARK)
        index = self.avoid if is_avoid else self.other
        self.numbers[(is_avoid, index.add(item.text.removeprefix(pages.AVOID_MARK)))] = item

    def find(self, shown: str) -> Item | None:
        """The item that says the same as `shown`."""
        is_avoid = shown.startswith(pages.AVOID_MARK)
        found = (self.avoid if is_avoid else self.other).find(shown.removeprefix(pages.AVOID_MARK))
        return None if found is None else self.numbers[(is_avoid, found)]


def count_voices(index: ItemIndex, known: Iterable[Evidence]) -> dict[int, list[Evidence]]:
    """The evidence for each item, by `id(item)`."""
    cache: dict[str, Item | None] = {}
    voices: dict[int, list[Evidence]] = {}
    for one in known:
        shown = shown_text(one.tag, one.text)
        if shown not in cache:
            cache[shown] = index.find(shown)
        item = cache[shown]
        if item is not None:
            voices.setdefault(id(item), []).append(one)
    return voices


def _count(item: Item, voices: list[Evidence], today: str) -> None:
    """Bring an item's count and missions up to what the evidence says; what a person raised is not lowered."""
    missions = list(dict.fromkeys([*(one.mission for one in voices), *item.where]))[-pages.MOST_NAMED :]
    if len(voices) > item.count or missions != item.where:
        item.count, item.where, item.date = max(item.count, len(voices)), missions, today


# ---- the ledger: who wrote what is there


def tampered(folder: str) -> list[str]:
    """Names in the ledger whose bytes are not what the harness wrote, or that are gone; [] without a ledger.

    A write of another mission that is under way, or that a crash cut short, counts as the harness's. Raises Busy.
    """
    if not _differing(folder):
        return []
    with _locked(folder):  # nobody writes now, so what still differs was not written by a mission
        return _differing(folder)


def _differing(folder: str) -> list[str]:
    coming, ledger = _coming(folder), _ledger(folder)
    found = {name: _digest(os.path.join(folder, name)) for name in sorted(ledger)}
    return [name for name, mark in found.items() if mark not in (ledger[name], coming.get(name))]


def strays(folder: str) -> list[str]:
    """Identities that the ledger does not know, [] without a ledger.

    `adopt` at the start of a run takes in what people made before, so that a stray is what appeared during the run.
    """
    names = _kept_names(folder)
    coming, ledger = _coming(folder), _ledger(folder)  # in this order: a name that is coming is in one of them
    return [name for name in names if name not in ledger and name not in coming] if ledger else []


def adopt(folder: str) -> dict[str, str]:
    """Take the present files into the ledger and return it: what people changed between runs stands."""
    if not files.names(folder):
        return {}
    with _locked(folder):
        ledger = {name: _digest(os.path.join(folder, name)) for name in _kept_names(folder)}
        if ledger != _ledger(folder):
            files.replace(_ledger_file(folder), files.dump_json(ledger))
        files.remove(_coming_file(folder))
    return ledger


def _write(folder: str, contents: dict[str, bytes]) -> None:
    """Say in the ledger what is coming, write the files, then make it the ledger. The caller holds the lock."""
    if not contents:
        return
    _finish(folder)
    coming = {os.path.basename(path): files.digest(data) for path, data in contents.items()}
    files.replace(_coming_file(folder), files.dump_json(coming))
    for path, data in contents.items():
        files.replace(path, data)
    files.replace(_ledger_file(folder), files.dump_json({**_ledger(folder), **coming}))
    files.remove(_coming_file(folder))


def _finish(folder: str) -> None:
    """After a crash in the middle of a write: the files that were written by then are the harness's."""
    done = {name: mark for name, mark in _coming(folder).items() if _digest(os.path.join(folder, name)) == mark}
    if done:
        files.replace(_ledger_file(folder), files.dump_json({**_ledger(folder), **done}))
    files.remove(_coming_file(folder))


def _kept_names(folder: str) -> list[str]:
    return [
        name for name in files.names(folder) if (name.endswith(".md") and name != README) or name == "evidence.jsonl"
    ]


def _digest(path: str) -> str:
    data = files.read(path)
    return "" if data is None else files.digest(data)


def _ledger_file(folder: str) -> str:
    return os.path.join(folder, "ledger.json")


def _coming_file(folder: str) -> str:
    return os.path.join(folder, "ledger.next.json")


def _ledger(folder: str) -> dict[str, str]:
    return dict(files.read_json(_ledger_file(folder)) or {})


def _coming(folder: str) -> dict[str, str]:
    return dict(files.read_json(_coming_file(folder)) or {})


def _locked(folder: str) -> AbstractContextManager[object]:
    """The folder's lock, held by one writer of all missions; raises Busy after LOCK_SECONDS."""
    from filelock import FileLock, Timeout  # here, because it costs 50 ms and readers need no lock

    files.make_folder(folder)
    path = os.path.join(folder, ".lock")
    try:
        return FileLock(path, timeout=LOCK_SECONDS, poll_interval=0.005).acquire()
    except Timeout:
        message = f"{path}: another mission has written to the identities for {LOCK_SECONDS:.0f} s. Try again later."
        raise Busy(message) from None
