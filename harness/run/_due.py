"""What is due in a run, in a sentence or two: the last words of its prompt."""

from __future__ import annotations

from harness.mission import features, mission
from harness.mission.features import Feature
from harness.mission.open_run import OpenRun
from harness.mission.receipts import Receipt
from harness.run.settle import worker

SIMPLE = {
    "curates": "Answer with the operations on the entries above that you mean; with none if code is right.",
    "specifies": "Write the whole SPEC.md now.",
    "answers": "Answer the message above now.",
    "": "Do now what your role says above.",
}


def of_run(run: OpenRun, receipts: list[Receipt], issues: list[str], requests: list[str]) -> str:
    """What the run is for. `receipts`: those in its prompt; `issues` and `requests`: ids of open issues, and of what a person
    asks of the plan."""
    feature = run.outcome.feature
    if run.role.plans:
        return _plan(run, feature, issues, requests)
    if run.role.commits and feature:
        return _work(run, feature, receipts)
    if run.role.judges:
        about = feature.id if feature else "the whole mission"
        return f"Try to break {about} now, and reply with at most three checks that are red, or with none."
    return SIMPLE.get(run.capability, SIMPLE[""])


def _plan(run: OpenRun, feature: Feature | None, issues: list[str], requests: list[str]) -> str:
    if not run.outcome.features:
        return "There is no plan yet: plan all of SPEC.md."
    due = [f"{feature.id} {_why(feature)}: plan it again"] if feature else []
    due += ["SPEC.md has changed: change the plan where it differs"] if mission.spec_changed(run.layout) else []
    due += [f"a person asks for {', '.join(requests)}: change the plan accordingly"] if requests else []
    due += [f"plan what ends these issues: {', '.join(issues)}"] if issues else []
    return "; ".join(due or ["Change the plan where it is wrong"]) + ". What you do not list stays as it is."


def _why(feature: Feature) -> str:
    claims = features.disputed(feature)
    return f"cannot pass, for {', '.join(claims)} is disputed" if claims else f"is {feature.status}"


def _work(run: OpenRun, feature: Feature, receipts: list[Receipt]) -> str:
    if worker.merges_with(run.outcome):
        return "Edit the files that conflict, so that they have the changes of both sides."
    red = list(dict.fromkeys(one.claim for one in receipts if not one.green))
    before = "Mend the red setup first. " if run.outcome.checks.setup_fault else ""
    last = f"The last time {', '.join(red)} was red. " if red else ""
    now = f"{before}Build {feature.id} now (attempt {feature.attempts + 1} of {feature.tries})"
    return f"{now}, as SPEC.md says, and leave nothing out. {last}Each check above must become green."
