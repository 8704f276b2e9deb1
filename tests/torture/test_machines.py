"""State machines: any interleaving of the public verbs, with crashes and rivals in between, keeps what doctor checks."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from harness.base.errors import LockBusy, UsageFault, VersionConflict
from harness.commands.setup import doctor
from harness.memory import lessons, pages, rebuild
from harness.memory.backlog import BatchLimit
from harness.mission import contract, features, lease, runs
from harness.mission.contract import Check, Claim, Contract
from harness.mission.features import Feature
from harness.mission.lease import Lease, Terms
from harness.run.settle import curator
from harness.run.settle.curator import CurationPlan, CurationSite
from harness.state import files, journal, names
from harness.state.layout import Layout
from harness.state.state import Changes, State
from tests import compacting, crash
from tests.crash import TORTURE
from tests.helpers import mission, put
from tests.journalled import ledger_is_wrong
from tests.memory.curating import TODAY, Mission, accounted
from tests.memory.test_rebuild import NOTES

LOOKS = dict(doctor.LOOKS)
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # these crashes involve no disk


def bad(layout: Layout, *what: str) -> list[str]:
    """What doctor finds bad, or warns of, in these looks."""
    return [one.what for name in what for one in LOOKS[name](layout) if one.state in ("bad", "warn")]


def crashed(action: Callable[[], object], at: int) -> bool:
    """Whether a child that carries out the action was stopped at its n-th call; else it has done it."""

    def attempt() -> None:
        crash.stop_at(at)
        action()

    code = crash.in_child(attempt)
    assert code in (0, crash.STOPPED), code
    return code == crash.STOPPED


class InFolder(RuleBasedStateMachine):
    """A machine with a mission in a folder of its own, which goes with it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.layout = mission(self.folder)

    def teardown(self) -> None:
        """The folder goes."""
        shutil.rmtree(self.folder)


# ---- the state


MANAGED = (names.FEATURES, names.SPEC, names.ESCALATION)
GROWN = (names.ISSUES, names.RUN_LOG)
texts = some.binary(max_size=8).map(lambda data: data.hex().encode() + b"\n")


class States(InFolder):
    """Files are put, removed, appended to and committed together, with and without what they expect; writers crash."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, bytes] = {}
        self.seen: dict[str, str] = {}

    def changes(self, puts: dict[str, bytes | None], tails: dict[str, bytes]) -> tuple[Changes, dict[str, bytes]]:
        """The changes, and what the files are behind them."""
        made, then = Changes(), dict(self.known)
        for name, data in puts.items():
            made.remove(name) if data is None else made.put(name, data)
            then.pop(name, None) if data is None else then.update({name: data})
        for name, lines in tails.items():
            made.append(name, lines)
            then[name] = then.get(name, b"") + lines
        return made, then

    @rule(
        puts=some.dictionaries(some.sampled_from(MANAGED), some.none() | texts, max_size=3),
        tails=some.dictionaries(some.sampled_from(GROWN), texts, max_size=2),
        at=some.none() | some.integers(1, 30),
    )
    def commit(self, puts: dict[str, bytes | None], tails: dict[str, bytes], at: int | None) -> None:
        """All of it is there, or, where the writer was killed, all or nothing."""
        made, then = self.changes(puts, tails)
        if at is None:
            State(self.layout).commit(made)
            self.known = then
        elif crashed(lambda: State(self.layout).commit(made), at):
            with files.Lock(self.layout.path(names.STATE_LOCK)):
                journal.finish_journal(self.layout)
            there = {name: data for name in (*MANAGED, *GROWN) if (data := State(self.layout).data(name)) is not None}
            assert there in (self.known, then)
            self.known = there
        else:
            self.known = then

    @rule(name=some.sampled_from(MANAGED))
    def look(self, name: str) -> None:
        """Remember the version of a file."""
        self.seen[name] = State(self.layout).read(name).version

    @rule(name=some.sampled_from(MANAGED), data=texts)
    def swap(self, name: str, data: bytes) -> None:
        """A change that expects what was seen takes place where that is still there, and only there."""
        is_same = self.seen.get(name, "") == State(self.layout).version(name)
        if is_same:
            State(self.layout).put(name, data, expect=self.seen.get(name, ""))
            self.known[name] = data
        else:
            with pytest.raises(VersionConflict):
                State(self.layout).put(name, data, expect=self.seen.get(name, ""))

    @rule(text=some.text(alphabet="ab\x00", max_size=5))
    def tear(self, text: str) -> None:
        """A power cut leaves half a line at the end of raw.md."""
        with open(self.layout.path(names.RAW), "ab") as file:
            file.write(text.encode())

    @rule()
    def note(self) -> None:
        """An append closes what was torn."""
        State(self.layout).append(names.RAW, b"whole\n")
        assert (files.read(self.layout.path(names.RAW)) or b"").split(b"\n")[-2:] == [b"whole", b""]
        assert bad(self.layout, "tails") == []

    @invariant()
    def holds(self) -> None:
        """The files are what was committed, and so says the ledger."""
        there = {name: data for name in (*MANAGED, *GROWN) if (data := State(self.layout).data(name)) is not None}
        assert there == self.known
        assert bad(self.layout, "ledger") == []
        assert not ledger_is_wrong(self.layout)


# ---- leases


CLAIMS = (lease.PLAN, lease.CURATION, lease.feature("F-001"), lease.feature("F-002"))


class Leases(InFolder):
    """Runs claim, let go and die."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[str, Lease] = {}
        self.number = 0

    @rule(claims=some.lists(some.sampled_from(CLAIMS), min_size=1, max_size=2, unique=True))
    def claim(self, claims: list[str]) -> None:
        """Who claims what another run holds is refused, with nothing changed."""
        live = lease.alive(self.layout)
        taken = any(claim in one.terms.claims for one in self.alive.values() for claim in claims)
        if taken:
            with pytest.raises(LockBusy, match="Another run holds"):
                for claim in claims:
                    lease.require_free(live, claim)
            return
        for claim in claims:
            lease.require_free(live, claim)
        self.number += 1
        run_id, _ = runs.make(self.layout, f"{self.number}-worker")
        own = Lease(self.layout, Terms(run=run_id, role="worker", pid=os.getpid(), since="now", claims=claims))
        own.take()
        self.alive[run_id] = own

    @precondition(lambda self: self.alive)
    @rule(dice=some.randoms(use_true_random=False), by_guardian=some.booleans())
    def end(self, dice: Any, by_guardian: bool) -> None:
        """A run ends, or is killed; while its guardian lives, its claims are its own."""
        name = dice.choice(sorted(self.alive))
        own = self.alive.pop(name)
        copies = [os.dup(descriptor) for descriptor in own.descriptors] if by_guardian else []
        own.release()
        assert runs.is_dead(self.layout, name) is not by_guardian
        for descriptor in copies:
            os.close(descriptor)
        os.unlink(self.layout.run(name).lock)

    @invariant()
    def holds(self) -> None:
        """Each claim has the one live holder that it was given to."""
        live = lease.alive(self.layout)
        assert {one.run: sorted(one.claims) for one in live} == {
            name: sorted(own.terms.claims) for name, own in self.alive.items()
        }
        held = [claim for one in live for claim in one.claims]
        assert len(held) == len(set(held))

    def teardown(self) -> None:
        """Nobody holds anything any more."""
        for own in self.alive.values():
            own.release()
        super().teardown()


# ---- features


IDS = ("F-001", "F-002", "F-003")


class Queue(InFolder):
    """Features are planned, moved, judged and retried, each time from disk and back to it."""

    def __init__(self) -> None:
        super().__init__()
        claims = [Claim(id=f"VAL-{name}", text="It works", checks=[Check(run="true")]) for name in IDS]
        put(self.layout.path(names.CONTRACT), contract.render(Contract(claims=claims)))
        self.count = 0

    def change(self, body: Callable[[list[Feature]], object]) -> None:
        """Read, change, and commit what was read."""
        data, version = State(self.layout).read(names.FEATURES)
        found = features.parse(data, self.layout.path(names.FEATURES))
        body(found)
        rendered = features.render(found)
        State(self.layout).put(names.FEATURES, rendered, expect=version)
        assert [one.asdict() for one in features.parse(rendered, "x")] == [one.asdict() for one in found]

    @rule(name=some.sampled_from(IDS), needs=some.lists(some.sampled_from(IDS), max_size=2, unique=True))
    def plan(self, name: str, needs: list[str]) -> None:
        """A feature is planned once."""

        def body(found: list[Feature]) -> None:
            if name not in [one.id for one in found]:
                found.append(
                    Feature(id=name, title="A part", claims=[f"VAL-{name}"], depends_on=[n for n in needs if n != name])
                )

        self.change(body)

    @rule(name=some.sampled_from(IDS), event=some.sampled_from(sorted(features.TRANSITIONS)))
    def move(self, name: str, event: str) -> None:
        """What the table of transitions does not have is refused."""

        def body(found: list[Feature]) -> None:
            for one in (one for one in found if one.id == name):
                before = one.status
                if before in features.TRANSITIONS[event]:
                    features.move(one, event)
                    assert one.status == features.TRANSITIONS[event][before]
                else:
                    with pytest.raises(UsageFault):
                        features.move(one, event)
                    assert one.status == before

        self.change(body)

    @rule(name=some.sampled_from(IDS))
    def judge(self, name: str) -> None:
        """A try is counted where one is left."""

        def body(found: list[Feature]) -> None:
            for one in (one for one in found if one.id == name and one.tries_left > 0):
                features.judged(one, "now", "r")

        self.change(body)

    @rule(name=some.sampled_from(IDS), text=some.text(max_size=5))
    def retry(self, name: str, text: str) -> None:
        """All tries are there again."""

        def body(found: list[Feature]) -> None:
            for one in (one for one in found if one.id == name):
                features.restart(one, "retry", "now", text)
                assert (one.status, one.tries_left > 0) == ("todo", True)

        self.change(body)

    @rule()
    def unblock(self) -> None:
        """What waits for features that have passed goes on."""
        self.change(lambda found: features.unblock(found, "now", "r"))

    @invariant()
    def holds(self) -> None:
        """Every feature is one that the harness writes, with its claims in the contract."""
        found = features.load(self.layout)
        contract.require(self.layout, found)
        assert all(one.status in features.STATUSES and one.tries_left >= 0 for one in found)
        assert bad(self.layout, "ledger", "tails") == []


# ---- memory


class Memories(RuleBasedStateMachine):
    """Notes, compactions that are killed anywhere, plans that others overtake, pages edited by hand, a lost lessons.jsonl."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.mission = Mission(self.folder)
        self.layout, self.noted, self.steps, self.cut = self.mission.layout, 0, 0, False
        self.plans: list[CurationPlan] = []

    def compact(self, most: int) -> None:
        """All that waits, in batches."""
        run, bound = f"run-{self.steps}", BatchLimit(entries=most, bytes=10**6)
        compacting.compact_all(self.layout, self.mission.folder, "m-1", run, TODAY, bound=bound)

    @rule(
        notes=some.lists(
            some.sampled_from(NOTES) | some.tuples(some.sampled_from(["TRICK", "FAIL", "-"]), some.text(max_size=30)),
            max_size=6,
        ),
        role=some.sampled_from(["worker", "validator", "person"]),
        feature=some.integers(0, 3),
    )
    def note(self, notes: list[tuple[str, str]], role: str, feature: int) -> None:
        """Anybody notes anything."""
        for tag, text in notes:
            self.mission.line(" ".join(text.replace("\r", " ").split("\n")), tag, f"F-{feature}", role)
            self.noted += 1

    @rule(most=some.sampled_from([2, 5, 1000]), at=some.none() | some.integers(1, 60))
    def curate(self, most: int, at: int | None) -> None:
        """A curator that is killed anywhere is gone on with by the next."""
        self.steps += 1
        if at is not None and crashed(functools.partial(self.compact, most), at):
            with files.Lock(self.layout.path(names.STATE_LOCK)):
                journal.finish_journal(self.layout)
            self.cut = True
            return
        if at is None:
            self.compact(most)
            self.cut = False

    @rule(most=some.sampled_from([2, 1000]))
    def plan(self, most: int) -> None:
        """A curator has read, and thinks."""
        self.steps += 1
        place = CurationSite(
            layout=self.layout, folder=self.mission.folder, mission="m-1", run=f"slow-{self.steps}", today=TODAY
        )
        self.plans.append(curator.plan(curator.gather(place.replace(bound=BatchLimit(entries=most, bytes=10**6)))))

    @precondition(lambda self: self.plans)
    @rule()
    def apply(self) -> None:
        """Its write counts if it is the first."""
        made = self.plans.pop(0)
        is_same = pages.curated(self.layout).generation == made.before.curated.generation
        if not is_same and made.before.waiting:
            with pytest.raises(LockBusy):
                curator.apply(self.layout, self.mission.folder, made)
        else:
            with contextlib.suppress(LockBusy):  # a person edited a page meanwhile
                curator.apply(self.layout, self.mission.folder, made)

    @rule(
        number=some.integers(0, 99), page=some.sampled_from(["memory", "summary"]), text=some.none() | some.just("mine")
    )
    def edit(self, number: int, page: str, text: str | None) -> None:
        """A person deletes a line, or adds one."""
        there = self.mission.memory if page == "memory" else self.mission.summary
        lines = [line for line in there.split("\n") if line.startswith("- ")]
        if lines and text is None:
            self.mission.edit(page, lines[number % len(lines)] + "\n", "")
        elif there and text:
            put(
                self.layout.path(names.MEMORY) if page == "memory" else self.layout.path(names.SUMMARY),
                f"{there}- {text} {number}\n",
            )

    @rule()
    def race(self) -> None:
        """Two curators have read the same: who is slower writes nothing, also where both would write the same pages."""
        for _ in range(2):
            self.note([("-", "verified at abc")], "worker", 1)
            self.curate(1000, None)  # from the second on, the pages stay as they are
        self.note([("-", "verified at abc")], "worker", 1)
        self.plan(1000)
        self.curate(1000, None)
        self.plans = [*self.plans[-1:], *self.plans[:-1]]
        self.apply()

    @rule()
    def lose(self) -> None:
        """What is derived is gone."""
        files.remove(self.layout.path(names.LESSONS))

    @invariant()
    def holds(self) -> None:
        """Every entry is there once, under its number; the archive gives the lessons; doctor finds nothing."""
        assert len(accounted(self.layout, cut=self.cut)) == self.noted
        assert bad(self.layout, "memory", "tails", "ledger") == []
        curated = pages.curated(self.layout)
        known = lessons.parse(files.read(self.layout.path(names.LESSONS)), curated.folded, curated.generation)
        if known is not None and curated.folded:
            assert rebuild.lessons(self.layout.path(names.ARCHIVE), curated).all.keys() >= known.all.keys()

    def teardown(self) -> None:
        """The folder goes."""
        shutil.rmtree(self.folder)


@pytest.mark.parametrize(
    ("machine", "examples", "steps"), [(Leases, 8, 15), (States, 6, 12), (Queue, 5, 15), (Memories, 8, 12)]
)
def test_any_interleaving_of_the_verbs_keeps_what_doctor_checks(
    machine: type[RuleBasedStateMachine], examples: int, steps: int
) -> None:
    """The same sequences each time; many more with HARNESS_TORTURE=1."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples * (25 if TORTURE else 1),
            stateful_step_count=steps * (2 if TORTURE else 1),
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
