"""Runs all checks of a contract on any clone, without a mission's state, so that anyone can reproduce the receipts."""

from __future__ import annotations

import os

from harness.base.errors import Refused, UsageFault
from harness.git import repository
from harness.model import contract
from harness.model.check_environment import CheckEnvironment
from harness.model.contract import Contract
from harness.model.receipts import Receipt
from harness.process import temporary
from harness.proof import fire, services
from harness.store import files
from harness.store.layout import Layout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def find_contract(path: str, folder: str) -> str:
    """The contract's path: the given one, else the mission's in `folder`, else validation-contract.md in `folder`."""
    paths = [path] if path else [Layout(folder).contract, os.path.join(folder, "validation-contract.md")]
    for candidate in paths:
        if os.path.isfile(candidate):
            return candidate
    raise UsageFault(f"There is no contract at {' or '.join(paths)}. Name one: {command('verify')} CONTRACT --in DIR")


def verify(contract_path: str, folder: str, at: str) -> Iterator[Receipt]:
    """Setup, services and every check in `folder`, or in a fresh worktree of its repository at commit `at`.

    Raises Refused if setup is red, UsageFault if the folder or the commit does not exist.
    """
    if not os.path.isdir(folder):
        raise UsageFault(f"There is no folder {folder}.")
    known, tag = contract.parse(files.read_text(contract_path) or "", contract_path), temporary.of_process("verify")
    if not at:
        yield from _fired(known, CheckEnvironment(directory=folder, tag=tag))
        return
    repository.require_top(folder)
    _require_commit(folder, at)
    room = temporary.create("verify", tag)
    target = os.path.join(room, os.path.basename(folder))
    try:
        repository.add_worktree(folder, target, at)
        place = CheckEnvironment(
            directory=target, head=repository.position(target).head, tree=repository.tree_of(target, "HEAD"), tag=tag
        )
        yield from _fired(known, place)
    finally:
        repository.remove_worktree(folder, target)
        temporary.remove(room)


def _require_commit(folder: str, at: str) -> None:
    """Raise UsageFault if the repository has no such commit."""
    try:
        repository.tree_of(folder, at + "^{commit}")
    except repository.GitFailed:
        remedy = "Give a commit id, a branch or a tag; a shallow clone may lack it (git fetch --unshallow)."
        raise UsageFault(f"There is no commit '{at}' in {folder}. {remedy}") from None


def _fired(known: Contract, place: CheckEnvironment) -> Iterator[Receipt]:
    fault = fire.setup_fault(known, place)
    if fault:
        raise Refused(fault)
    with services.Running(known.services, place) as up:
        yield from fire.fire_all(known.claims, "after", up)
