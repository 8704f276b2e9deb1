"""A person's orders about the next steps: the answer to a checkpoint, and a new feature."""

from __future__ import annotations

import json

from harness.base import encoding, schema
from harness.base.errors import UsageFault
from harness.decision import checkpoints, views
from harness.mission import contract, contract_log, features
from harness.mission.contract import Claim, Contract
from harness.mission.contract_log import PERSON, ContractChange
from harness.mission.features import Feature
from harness.mission.order_log import OrderContext
from harness.mission.receipts import Receipt
from harness.run.settle import _plan
from harness.state import names
from harness.state.layout import command


def answer(context: OrderContext, name: str, state: str, note: str, by: str) -> str:
    """The order `checkpoint grant` or `checkpoint deny`: answers all waiting checkpoints of this name. Raises
    UsageFault if there are none, and for a denial without a reason."""
    if state == "denied" and not note.strip():
        raise UsageFault(
            f"Give a reason for the next plan: {command('checkpoint deny')} {encoding.shell_word(name)} --note 'WHY'"
        )
    layout = context.layout
    for ask in checkpoints.named(views.gather(layout).asks.all, name):
        question = ask.text or ask.why
        if ask.cause == checkpoints.FILE:
            context.changes.remove(f"{names.CHECKPOINTS}/{name}.md")
        row = {"at": context.at, "by": by, "state": state, "name": name, "cause": ask.cause, "text": note.strip()}
        line = checkpoints.line(**row, question=question[: checkpoints.MAX_TEXT_CHARS])
        context.changes.append(names.CHECKPOINT_LOG, line)
    return (
        f"{name} is granted"
        if state == "granted"
        else f"{name} is denied; a plan is due, and its prompt has your reason"
    )


def want(context: OrderContext, title: str, text: str, by: str) -> str:
    """The order `feature add` without a check: makes a plan due whose prompt has this text."""
    if not title.strip():
        raise UsageFault(f"Describe the feature, such as: {command('feature add')} 'it exports CSV'")
    said = "\n".join(filter(None, [" ".join(title.split()), text.strip()]))
    line = checkpoints.line(at=context.at, by=by, state="wanted", text=said[: checkpoints.MAX_TEXT_CHARS])
    context.changes.append(names.CHECKPOINT_LOG, line)
    return "noted; a plan is due, and its prompt has it"


def add(context: OrderContext, feature: str, claim: str, fired: str) -> str:
    """The order `feature add` with checks: adds the feature and its claim to queue and contract, under unused ids."""
    wanted = schema.record(Feature, json.loads(feature), "an order has")
    new = schema.record(Claim, json.loads(claim), "an order has")
    known, log = contract.load(context.layout), contract_log.load(context.layout)
    for other in wanted.depends_on:
        features.find(context.features, other)
    there = [*(one.id for one in context.features), *(one.id for one in known.claims), *contract_log.retired(log)]
    number = next(n for n in range(1, 10**9) if not {f"f-{n:03}", f"val-f-{n:03}"} & {one.lower() for one in there})
    wanted.id, new.id = f"F-{number:03}", f"VAL-F-{number:03}"
    wanted.claims = [new.id]
    for key in ("title", "description", "priority"):
        wanted.note(context.at, PERSON, "set", key=key)
    context.features = [*context.features, wanted]
    made: Contract = known.replace(claims=[*known.claims, new])
    if faults := _plan.write_faults(made):
        raise UsageFault("; ".join(faults))
    receipts = [schema.record(Receipt, {**row, "claim": new.id}, "a check leaves") for row in json.loads(fired)]
    entry = ContractChange(
        verb=contract_log.ADD, claim=new.id, why=f"a person added {wanted.id}", new=new, fired=receipts
    )
    context.changes.put(names.CONTRACT, contract.render(made).encode())
    context.changes.append(names.CONTRACT_LOG, contract_log.render([entry.replace(at=context.at, by=PERSON)]))
    early = [one.command for one in receipts if one.green and not one.guard]
    warning = f"\nGreen already, so it proves nothing by itself: {early[0]}" if early else ""
    return f"{wanted.id} is todo, with the claim {new.id}{warning}"
