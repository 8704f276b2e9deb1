"""A plan: merged by id into features and contract, with all its faults. Pure."""

from __future__ import annotations

import contextlib
import re
from graphlib import CycleError, TopologicalSorter
from typing import Any

from harness.base import redaction, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.mission import contract as contracts
from harness.mission import contract_log
from harness.mission.contract import Check, Claim, Contract, Service
from harness.mission.contract_log import ContractChange
from harness.mission.features import Feature
from harness.mission.mission import SPEC_CHARS
from harness.state import documents

MAX_SECONDS = 900  # of a check, unless check_seconds is more
ABSOLUTE = re.compile(r"(^|[\s\"'=:<>(,])(/home/|/Users/|/root/)")


REFUSED_FORMS = (
    (
        re.compile(r"\|\|\s*(true|:)(?![\w./=-])"),
        "hides a failure with '|| true' or '|| :'",
        "let the exit status decide",
    ),
    (
        re.compile(r"(?<![&>\\])&\s*$", re.MULTILINE),
        "leaves something running with a trailing '&'",
        "declare a service",
    ),
    (re.compile(r"(^|[\s;&|(])sudo\s", re.MULTILINE), "uses sudo", "checks run without rights"),
    (ABSOLUTE, "names an absolute path of this machine", "use relative paths or $TMPDIR"),
    (
        re.compile(r"\|&?\s*[efz]?grep\s+(-[-\w=]+\s+)*(-[a-zA-Z]*q|--quiet|--silent)"),
        "ends a pipe with 'grep -q', which stops reading, so that under pipefail what writes into it fails",
        "write grep x >/dev/null",
    ),
)


PASSED = "belongs to a feature that has passed and cannot be changed"


SET_BY_PERSON = "was set by a person and stays as it is: leave it out of the plan"


class Draft(Record):
    """The mission with the plan applied: features, contract, lines for the log, and checks to try."""

    features: list[Feature]
    contract: Contract
    log: list[ContractChange] = []
    new_checks: list[str] = []

    def untried(self, done: set[tuple[str, str]]) -> list[tuple[Claim, Check]]:
        """The new checks with their claims, except those in `done`, given as (claim, command)."""
        new = set(self.new_checks)
        pairs = [(claim, check) for claim in self.contract.claims for check in claim.checks]
        return [(claim, check) for claim, check in pairs if check.run in new and (claim.id, check.run) not in done]


def draft(
    reply: dict[str, Any], features: list[Feature], contract: Contract, log: list[ContractChange]
) -> tuple[Draft, list[str]]:
    """(the plan merged into features and contract, all its faults). `log`: the contract log so far. The inputs stay
    unchanged."""
    faults: list[str] = []
    fixed = {claim for feature in features if feature.status == "passed" for claim in feature.claims}
    gone = {row["id"]: row["reason"] for row in reply.get("drop", [])}
    made = Draft(features=[], contract=contract.replace(claims=[]))
    fixed_why = dict.fromkeys(contract_log.set_by_person(log), SET_BY_PERSON) | dict.fromkeys(fixed, PASSED)
    _lay_claims(made, reply, contract, fixed_why, gone, faults)
    _lay_features(made, reply, features, gone, faults)
    made.contract.setup = reply.get("setup", contract.setup).rstrip("\n")
    kept = contract.setup_inputs if made.contract.setup == contract.setup else []
    made.contract.setup_inputs = reply.get("setup_inputs", kept)
    faults += contracts.input_faults(made.contract)
    if "services" in reply:
        made.contract.services = [Service(**{**row, "run": row["run"].strip("\n")}) for row in reply["services"]]
    names = [row["id"] for row in reply["features"]] + [row["id"] for row in reply["contract"]]
    used = {name.lower() for name in (*contract_log.retired(log), *gone)}
    faults += [f"the id '{name}' was dropped before; ids are never reused" for name in names if name.lower() in used]
    old, new = contract_log.blocks(contract), contract_log.blocks(made.contract)
    moved = [name for name, block in old.items() if block and new.get(name) != block]
    added = (name for name, block in new.items() if old.get(name) != block)
    faults += [f"{name} {why}" for name in added if (why := _unfit(new[name]))]
    if moved and not reply.get("reason", "").strip():
        faults.append(f"{', '.join(moved)} of the contract is changed or gone; say why in the plan's 'reason'")
    there = {*(one.id for one in features), *(one.id for one in contract.claims)}
    faults += [f"'{name}' cannot be dropped: there is none" for name in gone if name not in there]
    faults += _lint(made)
    return made, list(dict.fromkeys(faults))


def _lay_claims(
    made: Draft,
    reply: dict[str, Any],
    contract: Contract,
    fixed: dict[str, str],
    gone: dict[str, str],
    faults: list[str],
) -> None:
    given = {row["id"]: row for row in reply["contract"]}
    faults += schema.name_faults((row["id"] for row in reply["contract"]), "claim")
    for claim in contract.claims:
        row = given.pop(claim.id, None)
        if claim.id in fixed and (claim.id in gone or (row and _claim(row) != claim)):
            faults.append(f"{claim.id} {fixed[claim.id]}")
        elif claim.id in gone:
            made.log.append(ContractChange(verb=contract_log.DROP, claim=claim.id, why=gone[claim.id], old=claim))
            continue
        elif row and _claim(row) != claim:
            new, reason = _claim(row), row.get("reason", "").strip()
            if not reason and any(check not in new.checks for check in claim.checks):
                faults.append(f"{claim.id}: a check of the contract is changed or gone; say why in 'reason'")
            elif not reason and new.text != claim.text:
                faults.append(f"{claim.id}: the sentence of the claim is changed; say why in 'reason'")
            why = reason or "replanned"
            made.log.append(ContractChange(verb=contract_log.CHANGE, claim=claim.id, why=why, old=claim, new=new))
            made.new_checks += [check.run for check in new.checks if check not in claim.checks]
            made.contract.claims.append(new)
            continue
        made.contract.claims.append(claim)
    for row in given.values():
        claim = _claim(row)
        made.log.append(ContractChange(verb=contract_log.ADD, claim=claim.id, why="planned", new=claim))
        made.new_checks += [check.run for check in claim.checks]
        made.contract.claims.append(claim)


def _claim(row: dict[str, Any]) -> Claim:
    checks = [Check(run=check) if isinstance(check, str) else Check(**check) for check in row.get("checks", [])]
    for check in checks:
        check.run = check.run.strip("\n")
    return Claim(id=row["id"], text=" ".join(row["claim"].split()), checks=checks, manual=row.get("manual", False))


def _lay_features(
    made: Draft, reply: dict[str, Any], features: list[Feature], gone: dict[str, str], faults: list[str]
) -> None:
    given = {row["id"]: row for row in reply["features"]}
    faults += schema.name_faults((row["id"] for row in reply["features"]), "feature")
    for feature in features:
        row = given.pop(feature.id, None)
        theirs = feature.set_by_person  # a planner may repeat the spec; a person's text stands
        changed = feature.replace(**{key: value for key, value in (row or {}).items() if key not in theirs})
        if feature.status == "passed" and (feature.id in gone or changed != feature):
            faults.append(f"{feature.id} has passed and cannot be changed")
        elif feature.id in gone:
            made.log.append(ContractChange(verb=contract_log.DROP_FEATURE, claim=feature.id, why=gone[feature.id]))
            continue
        made.features.append(changed)
    made.features += [Feature(**row) for row in given.values()]


def _lint(made: Draft) -> list[str]:
    """Every fault of the resulting mission."""
    faults: list[str] = []
    claims = {claim.id for claim in made.contract.claims}
    ids = {feature.id for feature in made.features}
    owned: set[str] = set()
    faults += schema.name_faults((feature.id for feature in made.features), "feature")
    faults += schema.name_faults((claim.id for claim in made.contract.claims), "claim")
    if not made.features:
        faults.append("the plan has no feature")
    for feature in made.features:
        owned.update(feature.claims)
        if not feature.claims:
            faults.append(f"{feature.id} has no claim: nothing would show that it works")
        unknown = [claim for claim in feature.claims if claim not in claims]
        faults += [f"{feature.id} names the claim '{claim}', which does not exist" for claim in unknown]
        missing = [other for other in feature.depends_on if other not in ids]
        faults += [f"{feature.id} depends on '{other}', which does not exist" for other in missing]
    faults += [f"no feature has the claim {claim}" for claim in sorted(claims - owned)]
    doubtful = [claim.id for claim in made.contract.claims if claim.manual == bool(claim.checks)]
    faults += [f'{claim} needs checks, or "manual": true, not both or neither' for claim in doubtful]
    if circle := _circle(made.features):
        faults.append(f"features depend on each other in a circle: {', '.join(circle)}")
    return faults + [fault for check in made.new_checks for fault in form_faults(check)]


def _unfit(command: str) -> str:
    """Why a command of an agent may not be stored and run; "" if it may."""
    for rule, _, secret in redaction.secrets(command):
        if redaction.is_certain(rule, secret) and not redaction.is_made_up(secret):
            return f"contains a secret ({rule}): use a made-up value"
    hidden = command != command.translate(redaction.UNSEEN)
    return "has characters that control a terminal or hide text: write \\x1b" if hidden else ""


def form_faults(check: str, *folders: str) -> list[str]:
    """The refused shell forms in a check, each with an alternative; `folders`: paths that it must not name."""
    shown = redaction.received(check if len(check) < 80 else check[:77] + "…")
    found = [f"the check `{shown}` {fault}: {remedy}" for form, fault, remedy in REFUSED_FORMS if form.search(check)]
    found += [f"the check `{shown}` {why}" for why in [_unfit(check)] if why]
    if any(folder in check for folder in folders) and not ABSOLUTE.search(check):
        found.append(f"the check `{shown}` names this folder, where no clone is: use relative paths")
    return found


def ref_faults(reply: dict[str, Any], features: list[Feature], spec: str) -> list[str]:
    """The fault of new `spec_refs` that name no heading, if the spec has headings and a worker sees only the sections named."""
    titles = [title for title, _, _ in documents.headings(spec)] if len(spec) > SPEC_CHARS else []
    known = {(feature.id, ref) for feature in features for ref in feature.spec_refs}
    given = [(row["id"], ref) for row in reply["features"] for ref in row.get("spec_refs", [])]
    lost = [f"'{ref}' of {name}" for name, ref in given if (name, ref) not in known and not documents.named(spec, ref)]
    return [f"SPEC.md has no heading {' or '.join(lost)}; it has: {'; '.join(titles)}"] if titles and lost else []


def long_faults(checks: list[Check], seconds: float) -> list[str]:
    """The checks that ask for more time than a person gives one: `seconds`, or MAX_SECONDS if that is more."""
    most = max(seconds, MAX_SECONDS)
    asked = [check.seconds for check in checks if (check.seconds or 0) > most]
    return [f"a check asks for {one} seconds, and {most} are the most (check_seconds in config.toml)" for one in asked]


def _circle(features: list[Feature]) -> list[str]:
    """The features in a dependency cycle, or depending on one."""
    needs = {feature.id: feature.depends_on for feature in features}
    order = TopologicalSorter({name: needs.keys() & others for name, others in needs.items()})
    with contextlib.suppress(CycleError):  # features outside the cycle are yielded anyway
        order.prepare()
    while met := order.get_ready():
        order.done(*met)
        for name in met:
            del needs[name]
    return list(needs)


def write_faults(known: Contract) -> list[str]:
    """The fault of a contract that does not read back as written, which would stop or mislead later runs."""
    text, remedy = contracts.render(known), "write names without spaces, and no control characters"
    try:
        text.encode()
        again = contracts.parse(text, "the contract")
    except (BrokenFile, UnicodeEncodeError) as fault:
        return [f"the contract cannot be written down: {fault} In short: {remedy}"]
    differ = [claim.id for claim, read in zip(known.claims, again.claims, strict=False) if claim != read]
    where = ", ".join(differ) or "setup or services"
    return [] if again == known else [f"the contract cannot be written down ({where}): {remedy}"]
