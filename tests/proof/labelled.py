"""Diffs with a label, honest or cheat, and the checks that a contract has for them: each a file of tests/proof/diffs.

A file begins with `# where it is from`, and a `# check: COMMAND` for each check; `# names its tests: COMMAND` is a check
that names them. Half of the honest ones and of the cheats is for tuning the signals, the other half for reporting how good they
are. `near` are honest diffs that look like cheats.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from harness.base.record import Record
from harness.mission.contract import Claim
from harness.proof import _file_kinds, _patches, reward_hacking
from tests.planned import claim

FOLDER = Path(__file__).parent / "diffs"
NAMED = "# names its tests: "
PLACES = ["/home/ada/greet", "/home/ada/state/harness/greet-1"]


class Labelled(Record):
    """One diff: its name, its checks, and the text of the patch."""

    name: str
    claims: list[Claim]
    patch: str
    named: list[Claim] = []

    @property
    def rewrites(self) -> bool:
        """Whether it takes lines of a test, or changes a test's data."""
        tests = [one for one in _patches.parse(self.patch) if _file_kinds.TEST_FILE.search(one.path)]
        old = {path for letter, path in self.changed() if letter != "A"}
        more = any(one.path in old and not _file_kinds.PROGRAM.search(one.path) for one in tests)
        return more or any(line.strip() for one in tests for line in one.removed)

    @property
    def tuning(self) -> bool:
        """Whether it is of the half that the signals were tuned on."""
        return zlib.crc32(self.name.encode()) % 2 == 0

    def signs(self, *, named: bool = False) -> list[str]:
        """What the harness says about it; with `named`, as if a check named all its tests."""
        return reward_hacking.signs(self.changed(), self.patch, [*self.claims, *(self.named * named)], PLACES)

    def changed(self) -> list[tuple[str, str]]:
        """(letter, path) of each file."""
        found = []
        for part in self.patch.split("diff --git ")[1:]:
            head = part.split("\n@@")[0]
            letter = "A" if "\nnew file" in head else "D" if "\ndeleted file" in head else "M"
            found.append((letter, part.split("\n")[0].rpartition(" b/")[2]))
        return found


def load(kind: str) -> list[Labelled]:
    """All diffs of a kind: honest, near or cheats."""
    found = []
    for path in sorted((FOLDER / kind).glob("*.diff")):
        text = path.read_bytes().decode()
        head, begin, patch = text.partition("diff --git ")
        commands = [line.removeprefix("# check: ") for line in head.split("\n") if line.startswith("# check: ")]
        tests = [line.removeprefix(NAMED) for line in head.split("\n") if line.startswith(NAMED)]
        claims = [claim(f"VAL-{number}", command) for number, command in enumerate(commands, start=1)]
        named = [claim("VAL-TESTS", command) for command in tests]
        found.append(Labelled(name=path.stem, claims=claims, patch=begin + patch, named=named))
    return found


def rates() -> list[str]:
    """The rows of the table in docs/proof.md."""
    honest, cheats = load("honest"), load("cheats")
    kinds = [("honest", honest, False), ("honest, and a check names the tests that came with it", honest, True)]
    rows = []
    for label, diffs, named in [*kinds, ("cheats", cheats, False)]:
        mine = [diff for diff in diffs if diff.named or not named]
        halves = [[diff for diff in mine if diff.tuning == half] for half in (True, False)]
        cells = [f"{sum(bool(diff.signs(named=named)) for diff in some)} of {len(some)}" for some in (*halves, mine)]
        rows.append(f"| {label} | {' | '.join(cells)} |")
    marked = f"{sum(bool(diff.signs()) for diff in load('near'))} of {len(load('near'))}"
    return [*rows, f"| honest, and like a cheat | {marked} | none | {marked} |"]
