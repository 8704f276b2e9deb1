"""Reads the material of a prompt from disk, so that prompt.py stays pure and a prompt depends only on files."""

from __future__ import annotations

from itertools import islice

from harness.agents import registry
from harness.base import encoding
from harness.decision import checkpoints, person_notes
from harness.git import dotgit, merges, refs, repository
from harness.memory import archive, backlog, pages
from harness.mission import contract_log, issues, runs
from harness.mission.features import Feature
from harness.mission.open_run import OpenRun
from harness.mission.receipts import Receipt
from harness.run import _due
from harness.run.prompt import Material, cut, runtime
from harness.run.settle import worker
from harness.state import files, names
from harness.state.layout import identity_file, identity_folder
from harness.state.state import State
from harness.workplace import workplace
from harness.workspace.snapshot import WorkspaceSnapshot

RAW_ENTRIES = 200
SIDE_CHARS = 6000


def gather(run: OpenRun, workspace: WorkspaceSnapshot | None) -> Material:
    """Everything that the role's prompt is made of, with the workspace of its agents."""
    outcome = run.outcome
    layout, role = run.layout, run.role
    identity_path = identity_file(identity_folder(), role.name)
    spec_path = layout.folders.asked_spec if "plan" in role.reads else layout.path(names.SPEC)
    asked = workplace.asked_spec(layout) if role.plans or "plan" in role.reads else None
    accepted = State(layout).text(names.SPEC) or ""
    outcome.prompt.spec = encoding.decode(asked, layout.folders.asked_spec) if asked else accepted
    context = {**run.context.asdict(), "workplace": run.workplace, "state": layout.state}
    context |= {"shim": layout.path(names.SHIM), "repository": run.checkout if layout.folders.prefix else ""}
    open_issues = issues.serious(issues.load(layout)) if "issues" in role.reads else []
    found, fired = _findings(run) if "findings" in role.reads else [], _receipts(run)
    return Material(
        role=role,
        workspace=workspace.sections if workspace else [],
        memory=workspace.memory if workspace else None,
        identity=files.read_text(identity_path) or "",
        identity_path=identity_path,
        spec=outcome.prompt.spec if "plan" in role.reads else accepted,
        spec_path=layout.folders.relative(spec_path),
        summary=State(layout).text(names.SUMMARY) or "",
        summary_path=layout.shown(names.SUMMARY),
        memory_path=layout.shown(names.MEMORY),
        raw_path=layout.shown(names.RAW),
        features=outcome.features,
        features_path=layout.shown(names.FEATURES),
        contract=outcome.contract if "contract" in role.reads else None,
        claims=run.claims if "claims" in role.reads else [],
        contract_path=layout.shown(names.CONTRACT),
        feature=outcome.feature,
        receipts=fired,
        receipts_path=layout.shown(names.RUNS),
        findings=found,
        issues=open_issues,
        raw="\n\n".join(filter(None, [_raw(run), outcome.prompt.offer])) if "raw" in role.reads else "",
        repository=State(layout).text(names.REPOSITORY) or "" if role.plans else "",
        repository_path=layout.shown(names.REPOSITORY),
        steer=State(layout).text(names.STEER) or "" if "steer" in role.reads else "",
        steer_once="\n".join(person_notes.take(run.layout, run.id))
        if "steer" in role.reads and not run.entered and State(layout).exists(names.STEERING)
        else "",
        runtime=runtime(context),
        due=_due.of_run(run, fired, [one.id for one in open_issues], outcome.prompt.requests),
        has_shell=not run.context.agent
        or any(registry.has_shell(run.settings.agents.get(one, {})) for one in run.context.agent),
    )


def _receipts(run: OpenRun) -> list[Receipt]:
    """This run's own receipts, else those of the feature's last validation."""
    outcome = run.outcome
    judged = outcome.feature and outcome.feature.attempts
    if outcome.checks.receipts or not judged or "findings" not in run.role.reads:
        return outcome.checks.receipts
    return runs.last_receipts(run.layout, run.context.feature, [one.id for one in run.claims])


def _raw(run: OpenRun) -> str:
    entries = islice(backlog.entries(run.layout, pages.curated(run.layout)), RAW_ENTRIES)
    return "\n".join(f"{entry.seq} {archive.harmless(entry).shown()}" for entry in entries)


def _findings(run: OpenRun) -> list[tuple[str, str]]:
    """Findings of earlier runs: refused replies, restored files, interrupted work, signs in the diff."""
    outcome = run.outcome
    found, feature = [], outcome.feature
    untouched = feature is not None and not feature.notes  # then the run log has no run of it
    last = None if untouched else runs.last(run.layout, role=run.role.name, feature=run.context.feature)
    if last and (last.accepted is False or last.outcome not in runs.GOOD):
        found.append(("How your role's last run here ended", f"{last.outcome}: {last.reason}"))
    if last and last.refused:
        found.append(("What was put back after it (not yours to change)", "\n".join(last.refused)))
    if last and last.secrets:
        found.append(("Secrets in its work: read them from the environment instead", "\n".join(last.secrets)))
    if last and last.ignored:
        found.append(("In this tree and in no clone: move what is needed, or change the rule", "\n".join(last.ignored)))
    if outcome.checks.setup_fault:
        found.append(("The contract's setup is red in your tree", outcome.checks.setup_fault))
    if outcome.landing.conflicts:
        found += _conflict(run, "\n".join(outcome.landing.conflicts))
    if "plan" in run.role.reads and (fixed := _set_by_person(run)):
        found.append(("Set by a person: a plan leaves these as they are", "\n".join(fixed)))
    if run.role.plans and State(run.layout).exists(names.CHECKPOINT_LOG):
        said = checkpoints.for_the_plan(run.layout)
        outcome.prompt.requests = [row.id for row in said]
        found += [("What a person asks of the plan", "\n".join(map(checkpoints.words, said)))] if said else []
    if outcome.checks.signs:
        found.append(("Look twice: signs of gaming in the diff", "\n".join(outcome.checks.signs)))
    if feature:
        found += _cut_work(feature) + _diff(run, feature)
    if last and last.outcome == "conflict":
        ref = refs.PARTIAL + last.run
        found += _sides(run, dotgit.commit_of(run.layout.folders.top, ref), ref, "that run")
    return found


def _set_by_person(run: OpenRun) -> list[str]:
    """Settings of queue and contract by a person, one line each."""
    fields = [f"{one.id}: {', '.join(theirs)}" for one in run.outcome.features if (theirs := one.set_by_person)]
    return fields + sorted(contract_log.set_by_person(contract_log.load(run.layout)))


def _cut_work(feature: Feature) -> list[tuple[str, str]]:
    if not feature.cuts():
        return []
    run_id = next(note["run"] for note in reversed(feature.notes) if note["kind"] == "cut")
    text = f"A run was cut short; its work is committed on this branch as wip({feature.id}). Continue from it.\n"
    return [("Cut work", f"{text}See what it did: git show --stat refs/harness/partial/{run_id}")]


def _sides(run: OpenRun, commit: str, ref: str, who: str) -> list[tuple[str, str]]:
    """The changes of this commit, and of what landed meanwhile, in the files that both changed."""
    if not commit:
        return []
    mine, theirs = merges.sides(run.layout.folders.top, commit, run.context.head)
    return [
        ("What landed meanwhile, and is in your tree", cut(theirs, SIDE_CHARS, f"git log -p {ref}..")),
        (f"What {who} did to the same files, and is not in your tree", cut(mine, SIDE_CHARS, f"git show {ref}")),
    ]


def _conflict(run: OpenRun, paths: str) -> list[tuple[str, str]]:
    """What to do with files that a person changed too: the worker that merges them gets both sides."""
    if not (theirs := worker.merges_with(run.outcome)):
        return [("Leave these alone: a person changed them too, and must merge first", paths)]
    task = "Your task now: edit each of these files so that it has the changes of both sides below"
    return [(task, paths), *_sides(run, theirs, theirs, "a person")]


def _diff(run: OpenRun, feature: Feature) -> list[tuple[str, str]]:
    """The feature's last commit, as a stat and the command that shows it."""
    if run.changes_tree and not feature.attempts:
        return []
    last = next((one for one in runs.finished(run.layout) if one.feature == feature.id and one.commit), None)
    if last is None:
        return []
    stat = repository.diff_stat(run.layout.folders.top, last.commit + "^", last.commit)
    return [(f"What its last {last.role} changed", f"{stat}\nSee it: git show {last.commit[:10]}")]
