"""What a prompt is made of, read from disk: so that prompt.py stays pure and a prompt depends on files alone."""

from __future__ import annotations

from harness.git import repository
from harness.integrity import reconcile
from harness.memory import raw
from harness.model import issues, runs
from harness.model.open_run import Run
from harness.model.receipts import Receipt
from harness.run.prompt import Material, runtime
from harness.store import files

RAW_ENTRIES = 200
HOW_TO_REPLY = (
    "Reply with `harness reply FILE` (`-` = stdin; it says what is wrong with it), or end your last message with one "
    "fenced block whose info string is `json harness`."
)


def gather(run: Run) -> Material:
    """Everything that the role's prompt is made of."""
    layout, role = run.layout, run.role
    identity, identity_path = reconcile.identity_text(role.name)
    spec_path = layout.asked_spec if "plan" in role.reads else layout.spec
    context = {**run.context.asdict(), "project": layout.project, "state": layout.state, "shim": layout.shim}
    return Material(
        role=role,
        identity=identity,
        identity_path=identity_path,
        spec=files.read_text(spec_path) or files.read_text(layout.spec) or "",
        spec_path=layout.relative(spec_path),
        summary=files.read_text(layout.summary) or "",
        summary_path=layout.relative(layout.summary),
        memory_path=layout.relative(layout.memory),
        raw_path=layout.relative(layout.raw),
        features=run.features,
        features_path=layout.relative(layout.features),
        contract=run.contract if "contract" in role.reads else None,
        claims=run.claims if "claims" in role.reads else [],
        contract_path=layout.relative(layout.contract),
        feature=run.feature,
        receipts=_receipts(run),
        receipts_path=layout.relative(layout.runs),
        findings=list(_findings(run)) if "findings" in role.reads else [],
        issues=issues.serious(issues.load(layout)) if "issues" in role.reads else [],
        raw=_raw(run) if "raw" in role.reads else "",
        steer=files.read_text(layout.steer) or "" if "steer" in role.reads else "",
        runtime=runtime(context),
        how_to_reply=HOW_TO_REPLY,
    )


def _receipts(run: Run) -> list[Receipt]:
    """This run's own receipts, else those of the feature's last validation."""
    if run.receipts or not run.feature or not run.feature.attempts or "findings" not in run.role.reads:
        return run.receipts
    return runs.last_receipts(run.layout, run.context.feature, "validator")


def _raw(run: Run) -> str:
    from harness.memory import pages  # only the curator's prompt shows raw entries

    folds = pages.parse_curated(files.read(run.layout.curated), run.layout.curated)
    rows = []
    for entry in raw.waiting(run.layout, folds.first_seq, folds.folded):
        rows.append(f"{entry.seq} {entry.line()}")
        if len(rows) == RAW_ENTRIES:
            break
    return "\n".join(rows)


def _findings(run: Run) -> list[tuple[str, str]]:
    """What went before: why a reply was not accepted, what was put back, cut work, what the diff touches."""
    found = []
    untouched = run.feature is not None and not run.feature.notes  # then nothing of it stands in the books
    last = None if untouched else runs.last(run.layout, role=run.role.name, feature=run.context.feature)
    if last and (last.accepted is False or last.outcome not in runs.GOOD):
        found.append(("How your role's last run here ended", f"{last.outcome}: {last.reason}"))
    if last and last.refused:
        found.append(("What was put back after it (not yours to change)", "\n".join(last.refused)))
    if run.signs:
        found.append(("Look twice: signs of gaming in the diff", "\n".join(run.signs)))
    if run.feature:
        found += _cut_work(run) + _diff(run)
    return found


def _cut_work(run: Run) -> list[tuple[str, str]]:
    feature = run.feature
    if feature is None or not feature.cuts():
        return []
    run_id = next(note["run"] for note in reversed(feature.notes) if note["kind"] == "cut")
    text = (
        f"A run was cut short; its work is committed on this branch as wip({feature.id}). Continue from it.\n"
        f"See what it did: git show --stat refs/harness/partial/{run_id}"
    )
    return [("Cut work", text)]


def _diff(run: Run) -> list[tuple[str, str]]:
    """What the feature's last worker changed, as a stat and the command that shows it."""
    feature = run.feature
    if feature is None or (run.changes_tree and not feature.attempts):
        return []
    last = runs.last(run.layout, role="worker", feature=feature.id)
    if last is None or not last.commit:
        return []
    stat = repository.diff_stat(run.layout.project, last.commit + "^", last.commit)
    return [("What its last worker changed", f"{stat}\nSee it: git show {last.commit[:10]}")]
