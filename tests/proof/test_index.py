"""The index of proof: it equals a read of all receipts, whenever it is updated."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.base import schema
from harness.base.errors import BrokenFile
from harness.mission import contract_log, receipts, runs
from harness.mission.contract import Check, Claim
from harness.mission.receipts import Receipt
from harness.proof import index
from harness.proof.index import ClaimStatus
from harness.state import names
from harness.state.layout import Layout
from tests.helpers import mission, put
from tests.planned import claim

CHECK = Check(run="test -f one")
ONE = Claim(id="VAL-1", text="It holds", checks=[CHECK])


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission without a run."""
    return mission(tmp_path)


def receipt(exit_code: int | None = 0, command: str = CHECK.run, name: str = "VAL-1", **fields: Any) -> Receipt:
    """The result of a check; by default what is red and what is green ran on two trees."""
    tree = "new" if exit_code == 0 else "old"
    plain = {"output": "", "output_sha256": "", "tree": tree, "by": "r", "host": "h", "seconds": 0.1, "phase": "after"}
    more = {"head": "c0ffee", "at": "2026-04-24T10:05:12Z", **plain, **fields}
    return Receipt(claim=name, command=command, exit=exit_code, **more)


def ran(layout: Layout, run_id: str, *found: Receipt, verdict: str = "red", accepted: bool = False) -> None:
    """A finished run with these receipts, by default a validator's."""
    put(layout.run(run_id).receipts, receipts.render(list(found)))
    row = {"run": run_id, "verdict": verdict, "accepted": accepted, "seal": runs.seal(layout.run(run_id))}
    with open(layout.path(names.RUN_LOG), "ab") as books:
        books.write(json.dumps(row).encode() + b"\n")


def fresh(layout: Layout) -> dict[str, Any]:
    """The index rebuilt from the run log and all receipts."""
    shutil.rmtree(layout.cache, ignore_errors=True)
    return {key: trail.asdict() for key, trail in index.load(layout).items()}


def standing(layout: Layout, one: Claim = ONE) -> ClaimStatus:
    """The status of a claim."""
    rows = contract_log.load(layout)
    return index.claim_status(one, index.load(layout), contract_log.weakened(rows), contract_log.accepted(rows))


# the index


def test_the_index_equals_a_full_read_after_any_number_of_runs(layout: Layout) -> None:
    """Updated after each run or after many: it equals a full read."""
    dice = random.Random(7)
    for number in range(60):
        found = [
            receipt(
                dice.choice([0, 1, None]), f"check {dice.randrange(4)}", f"V-{dice.randrange(3)}", head=f"h{number}"
            )
            for _ in range(dice.randrange(4))
        ]
        ran(layout, f"run-{number}", *[one.replace(flaky=dice.random() < 0.2 and one.green) for one in found])
        if dice.random() < 0.5:
            held = {key: trail.asdict() for key, trail in index.load(layout).items()}
            assert held == fresh(layout)


def test_only_what_is_new_is_read(layout: Layout) -> None:
    """Old runs are not opened again, so a long mission stays fast."""
    ran(layout, "r-1", receipt(1))
    assert standing(layout).red == ["r-1", "c0ffee", "2026-04-24T10:05:12Z"]
    kept = Path(layout.cache, "proofs.json")
    kept.write_text(kept.read_text().replace('"c0ffee"', '"kept"'))
    ran(layout, "r-2", receipt(0))
    assert (standing(layout).word, standing(layout).red[1], standing(layout).green[1]) == ("proven", "kept", "c0ffee")


FORGED = json.dumps(
    {"text": "", "fields": index.FIELDS, "value": {"size": 0, "digest": "", "trails": {"k": {"red": 5}}}}
)
TORN = [
    "",
    "{",
    "[]",
    "null",
    "{}",
    '{"text":"","value":{}}',
    '{"text":"","value":{"size":5}}',
    FORGED,
    '{"value":[1]}',
]


@pytest.mark.parametrize("text", TORN)
def test_a_torn_cache_is_an_absent_one(layout: Layout, text: str) -> None:
    """The receipts hold everything, and the cache is whole afterwards."""
    ran(layout, "r-1", receipt(1))
    ran(layout, "r-2", receipt(0))
    whole = fresh(layout)
    path = Path(layout.cache, "proofs.json")
    path.write_text(text)
    assert {key: trail.asdict() for key, trail in index.load(layout).items()} == whole
    assert json.loads(path.read_text())["value"]["trails"] == whole


def test_a_run_log_that_became_shorter_is_read_from_the_start(layout: Layout) -> None:
    """A restored snapshot: entries of lost runs do not count."""
    ran(layout, "r-1", receipt(1))
    size = os.path.getsize(layout.path(names.RUN_LOG))
    ran(layout, "r-2", receipt(0))
    assert standing(layout).word == "proven"
    os.truncate(layout.path(names.RUN_LOG), size)
    assert standing(layout).word == "unproven"


def test_books_that_became_other_ones_are_read_anew(layout: Layout) -> None:
    """Of the same length, or longer: every byte of the source counts."""
    ran(layout, "r-1", receipt(1))
    ran(layout, "r-2", receipt(0))
    put(layout.run("r-3").receipts, receipts.render([receipt(1)]))
    assert standing(layout).word == "proven"
    before = Path(layout.path(names.RUN_LOG)).read_bytes()
    for after in (before.replace(b"r-2", b"r-3"), before.replace(b"r-2", b"r-3") + before, before[1:-1] + b"\n{}\n"):
        Path(layout.path(names.RUN_LOG)).write_bytes(after)
        if after.startswith(b"{"):
            assert {key: trail.asdict() for key, trail in index.load(layout).items()} == fresh(layout)
        else:
            with pytest.raises(BrokenFile, match="line 1: the line is not a finished run"):
                index.load(layout)


def test_a_torn_last_line_of_the_run_log_waits_for_its_end(layout: Layout) -> None:
    """It is not used yet, but later it is."""
    ran(layout, "r-1", receipt(1))
    put(layout.run("r-2").receipts, receipts.render([receipt(0)]))
    with open(layout.path(names.RUN_LOG), "ab") as books:
        books.write(b'{"verdict": "", "accepted": true, "run": "r-')
    assert standing(layout).word == "unproven"
    with open(layout.path(names.RUN_LOG), "ab") as books:
        books.write(b'2", "seal": "%s"}\n' % runs.seal(layout.run("r-2")).encode())
    assert standing(layout).word == "proven"


@pytest.mark.parametrize("line", ["{", "[]", "5", '{"verdict": "red"}'])
def test_a_line_of_the_run_log_that_is_no_run_is_named(layout: Layout, line: str) -> None:
    """However old it is: its proof must not vanish silently."""
    ran(layout, "r-1", receipt(1))
    with open(layout.path(names.RUN_LOG), "a") as books:
        books.write(line + "\n")
    ran(layout, "r-2", receipt(0))
    with pytest.raises(BrokenFile, match=r"runs\.jsonl, line 2: the line is not a finished run"):
        index.load(layout)


def test_runs_without_receipts_and_no_runs_at_all_are_no_error(layout: Layout) -> None:
    """Most runs fire no checks."""
    assert index.load(layout) == {}
    ran(layout, "r-1")
    os.unlink(layout.run("r-1").receipts)
    assert index.load(layout) == {}


def test_receipts_that_an_agent_could_have_written_do_not_count(layout: Layout) -> None:
    """Neither a worker's run nor a planner's run with a refused plan fires checks that count."""
    ran(layout, "r-1", receipt(1), verdict="")
    ran(layout, "r-2", receipt(1), verdict="", accepted=False)
    ran(layout, "r-3", receipt(0))
    assert standing(layout).word == "unproven"
    ran(layout, "r-4", receipt(1), verdict="", accepted=True)
    ran(layout, "r-5", receipt(0))
    assert (standing(layout).word, standing(layout).red[0]) == ("proven", "r-4")


# the status of a claim


@pytest.mark.parametrize(
    ("codes", "word"),
    [
        ([], "unproven"),
        ([0], "unproven"),
        ([1], "unproven"),
        ([1, 0], "proven"),
        ([None, 0], "proven"),
        ([0, 1], "unproven"),
        ([0, 1, 0], "proven"),
        ([1, 0, 1], "unproven"),
    ],
)
def test_proven_is_green_now_and_red_before(layout: Layout, codes: list[int | None], word: str) -> None:
    """A timeout is red; a check that is red again is no longer proven."""
    for number, code in enumerate(codes):
        ran(layout, f"r-{number}", receipt(code))
    assert standing(layout).word == word


GUARDED = ONE.replace(checks=[CHECK.replace(guard=True)])


@pytest.mark.parametrize("codes", [[0], [1, 0], [0, 1, 0]])
def test_guards_alone_prove_nothing(layout: Layout, codes: list[int]) -> None:
    """They may be green without the work, also where they were red for a while."""
    for number, code in enumerate(codes):
        ran(layout, f"r-{number}", receipt(code))
    status = standing(layout, GUARDED)
    assert (status.word, status.reason) == ("guarded", "its checks are guards, which may be green without the work")
    ran(layout, "r-9", receipt(1))
    assert (standing(layout, GUARDED).word, standing(layout, GUARDED).reason) == ("unproven", "a check is red")


def test_a_red_guard_is_no_red_of_the_check_beside_it(layout: Layout) -> None:
    """Only a check that is no guard proves its claim."""
    both = ONE.replace(checks=[CHECK.replace(guard=True), Check(run="test -f two")])
    ran(layout, "r-1", receipt(1), receipt(0, "test -f two", tree="old"))
    ran(layout, "r-2", receipt(0), receipt(0, "test -f two"))
    assert (standing(layout, both).word, standing(layout, both).reason) == ("unproven", "no check of it was ever red")
    ran(layout, "r-3", receipt(1, "test -f two", tree="older"))
    ran(layout, "r-4", receipt(0, "test -f two"))
    assert standing(layout, both).word == "proven"


REMEMBERS: list[tuple[str, list[tuple[int, str]], str]] = [
    ("nothing was done in between", [(1, "a"), (0, "a")], "a"),
    ("it was red at the tree of the work, too", [(1, "a"), (1, "b"), (0, "b")], "b"),
    ("its only red tree is green, too", [(1, "a"), (0, "a"), (0, "b")], "a"),
    ("its only red tree was green before", [(0, "a"), (1, "a"), (0, "b")], "a"),
    ("another tree was only red", [(1, "a"), (1, "b"), (0, "b"), (0, "c")], ""),
    ("the work was red at first", [(1, "a"), (1, "b"), (0, "c")], ""),
]


@pytest.mark.parametrize(("ran_at", "tree"), [case[1:] for case in REMEMBERS], ids=[case[0] for case in REMEMBERS])
def test_red_and_green_at_the_same_tree_is_no_proof(layout: Layout, ran_at: list[tuple[int, str]], tree: str) -> None:
    """Such a check remembers that it ran, or depends on chance; the reason names the tree."""
    for number, (code, where) in enumerate(ran_at):
        ran(layout, f"r-{number}", receipt(code, tree=where))
    status = standing(layout)
    assert status.word == ("unproven" if tree else "proven")
    assert (f"red and green at the same tree {tree}:" in status.reason) == bool(tree)
    assert {key: trail.asdict() for key, trail in index.load(layout).items()} == fresh(layout)


@pytest.mark.parametrize(
    ("by_hand", "tree", "word"),
    [
        ([(1, "a")], "b", "proven"),
        ([(1, "a")], "a", "unproven"),
        ([(0, "b"), (1, "a")], "b", "proven"),
        ([(0, "b"), (1, "b")], "b", "unproven"),
        ([(0, "b")], "b", "unproven"),
    ],
)
def test_what_a_persons_new_check_said_counts_like_a_runs(
    layout: Layout, by_hand: list[tuple[int, str]], tree: str, word: str
) -> None:
    """Before the first run with it: red at another tree proves, red at the same one does not."""
    found = [receipt(code, tree=where, by="person", at="2026-04-24T10:00:00Z") for code, where in by_hand]
    entry = contract_log.ContractChange(
        verb="change", claim="VAL-1", why="", by="person", old=ONE, new=ONE, fired=found
    )
    put(layout.path(names.CONTRACT_LOG), contract_log.render([entry]))
    ran(layout, "r-1", receipt(0, tree=tree))
    assert standing(layout).word == word
    assert standing(layout).red == next(([one.by, one.head, one.at] for one in found if not one.green), [])


def test_a_flaky_result_is_red_and_green_at_the_same_tree(layout: Layout) -> None:
    """So a check that is green only when it runs again, as in a fresh folder, proves nothing."""
    ran(layout, "r-1", receipt(1))
    ran(layout, "r-2", receipt(0))
    assert standing(layout).word == "proven"
    ran(layout, "r-3", receipt(0, flaky=True))
    assert (standing(layout).word, standing(layout).marks) == ("unproven", ["flaky"])


# what was changed after a run closed


def closed(layout: Layout, run_id: str, *found: Receipt) -> None:
    """A finished run with a run digest over its files."""
    ran(layout, run_id, *found)
    lines = Path(layout.path(names.RUN_LOG)).read_text().splitlines()
    lines[-1] = json.dumps({**json.loads(lines[-1]), "seal": runs.seal(layout.run(run_id))})
    Path(layout.path(names.RUN_LOG)).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("indexed", [True, False], ids=["it was read before", "nobody read it yet"])
@pytest.mark.parametrize("name", runs.SEALED)
def test_a_receipt_that_was_tampered_with_counts_as_none(layout: Layout, indexed: bool, name: str) -> None:
    """Whichever file of the run was changed, and also where the index had its receipts already; put back, they count."""
    closed(layout, "r-1", receipt(1))
    closed(layout, "r-2", receipt(0))
    if indexed:
        assert standing(layout).word == "proven"
    path = Path(layout.run("r-1").folder, name)
    before = path.read_bytes() if path.exists() else None
    put(str(path), (before or b"{}\n") + b"\n")
    assert (standing(layout).word, standing(layout).red) == ("unproven", [])
    if before is None:
        path.unlink()
    else:
        path.write_bytes(before)
    assert (standing(layout).word, standing(layout).red[0]) == ("proven", "r-1")


def test_every_check_of_a_claim_must_be_green_and_one_was_red(layout: Layout) -> None:
    """Of two checks, one with a red result is enough; a check without a receipt is not green."""
    two = claim("VAL-1", CHECK.run, "test -f two")
    ran(layout, "r-1", receipt(1), receipt(0))
    assert standing(layout, two).word == "unproven"
    ran(layout, "r-2", receipt(0, "test -f two"))
    assert standing(layout, two).word == "proven"


def test_another_claims_receipt_proves_nothing(layout: Layout) -> None:
    """Neither does the receipt of a check that has changed since."""
    ran(layout, "r-1", receipt(1, name="VAL-2"), receipt(0, name="VAL-2"), receipt(1, "old"), receipt(0, "old"))
    assert (standing(layout).word, standing(layout).green) == ("unproven", [])


def test_marks_do_not_change_the_word(layout: Layout) -> None:
    """One flaky result marks the claim for good; it can still be proven, at another tree."""
    ran(layout, "r-1", receipt(1), receipt(0, flaky=True, tree="first"))
    ran(layout, "r-2", receipt(0))
    assert (standing(layout).word, standing(layout).marks) == ("proven", ["flaky"])


# the contract log


def logged(layout: Layout, verb: str, old: Claim | None, new: Claim | str | None) -> None:
    """One line of the contract log, as a plan or a person writes it."""

    def plain(one: Claim | str | None) -> Any:
        return schema.plain(one) if isinstance(one, Claim) else one

    row = {"at": "t", "by": "r", "verb": verb, "claim": "VAL-1", "why": "w", "old": plain(old), "new": plain(new)}
    with open(layout.path(names.CONTRACT_LOG), "ab") as log:
        log.write(json.dumps(row).encode() + b"\n")


MORE = ONE.replace(checks=[CHECK, Check(run="test -f two")])
CHANGES = [
    ("a check was added", ONE, MORE, False),
    ("a check was dropped", MORE, ONE, True),
    ("a check was changed", ONE, claim("VAL-1", "true"), True),
    ("a check became a guard", ONE, ONE.replace(checks=[CHECK.replace(guard=True)]), True),
    ("only the words changed", ONE, ONE.replace(text="It holds well"), False),
    ("a person is to look instead", ONE, Claim(id="VAL-1", text="t", manual=True), True),
    ("a check came where a person was to look", Claim(id="VAL-1", text="t", manual=True), ONE, False),
]


@pytest.mark.parametrize(("old", "new", "weak"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_a_claim_is_weakened_where_it_lost_a_check(layout: Layout, old: Claim, new: Claim, weak: bool) -> None:
    """More checks weaken nothing; the mark stays for good."""
    logged(layout, "add", None, old)
    assert contract_log.weakened(contract_log.load(layout)) == set()
    logged(layout, "change", old, new)
    assert contract_log.weakened(contract_log.load(layout)) == ({"VAL-1"} if weak else set())
    logged(layout, "change", new, new)
    assert ("weakened" in standing(layout).marks) == weak


def test_a_dropped_claim_is_weakened_and_a_dropped_feature_is_not_a_claim(layout: Layout) -> None:
    """Features are dropped with their claims, each in a line of its own."""
    logged(layout, "drop feature", None, None)
    assert contract_log.weakened(contract_log.load(layout)) == set()
    logged(layout, "drop", ONE, None)
    assert contract_log.weakened(contract_log.load(layout)) == {"VAL-1"}


def test_a_manual_claim_is_manual_and_accepted_by_a_persons_decision(layout: Layout) -> None:
    """It blocks nothing and is never called proven."""
    manual = Claim(id="VAL-1", text="It looks right", manual=True)
    assert (standing(layout, manual).word, standing(layout, manual).marks) == ("manual", [])
    logged(layout, "accept", None, "c0ffee")
    assert (standing(layout, manual).word, standing(layout, manual).marks) == ("manual", ["accepted"])


def test_an_adversarial_check_weakens_nothing(layout: Layout) -> None:
    """Anyone may add a check."""
    row = {"at": "t", "by": "r", "verb": "aim", "claim": "VAL-1", "why": "w", "old": None, "new": CHECK.asdict()}
    put(layout.path(names.CONTRACT_LOG), json.dumps(row) + "\n")
    assert contract_log.weakened(contract_log.load(layout)) == set()


def test_a_sign_belongs_to_the_claim_that_it_names(layout: Layout) -> None:
    """Whichever feature's work left it; one that names no claim belongs to the claims of that feature."""
    other = Claim(id="VAL-2", text="t", checks=[Check(run="other")])
    about = "edits a, which a check of VAL-2 names"
    ran(layout, "1-v", receipt(0, notes=[about]), receipt(0, "other", "VAL-2"))
    assert (standing(layout).marks, standing(layout, other).marks) == ([], ["signs"])
    assert index.signs_about(other, index.load(layout)) == [about]
    ran(layout, "2-v", receipt(0, notes=["skips tests in a"]))
    assert standing(layout).marks == ["signs"]


def test_a_sweep_that_could_not_hide_the_mission_leaves_a_sign(layout: Layout) -> None:
    """Its other notes, of what a clone lacks, are none."""
    ran(layout, "1-v", receipt(0, phase="sweep", notes=["the contract has no setup"]))
    assert standing(layout).marks == []
    ran(layout, "2-v", receipt(0, phase="sweep", notes=["the contract has no setup", receipts.OWN_FOLDER + "a"]))
    assert standing(layout).marks == ["signs"]
