"""Runs all checks of a contract on any clone, without a mission's state, so that anyone can reproduce the receipts."""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.base.errors import RequestRefused, UsageFault
from harness.git import first_commit, repository
from harness.git.checkouts import clones
from harness.git.settings import RecordedSettings
from harness.mission import contract
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Contract
from harness.mission.receipts import Receipt
from harness.process import temporary
from harness.proof import check_runs, fresh_clone, services, tampering
from harness.state import files, names
from harness.state.layout import Layout, command, repository_of
from harness.workplace import confine

LOCAL = "this repository has local settings that no clone has, so also try --at HEAD: "


def find_contract(path: str, folder: str) -> str:
    """The contract's path: the given one, else the mission's in `folder`, else validation-contract.md in `folder`."""
    paths = [path] if path else [Layout(folder).path(names.CONTRACT), os.path.join(folder, "validation-contract.md")]
    for candidate in paths:
        if os.path.isfile(candidate):
            return candidate
    raise UsageFault(f"There is no contract at {' or '.join(paths)}. Give one: {command('verify')} CONTRACT --in DIR")


def verify(contract_path: str, folder: str, at: str) -> Iterator[Receipt]:
    """Run setup, services and every check in `folder` as it is, or in a fresh clone of its repository at commit `at`.

    In both cases with a fresh HOME, and without the folders that exist only on a mission's machine: the project of the
    contract or clone, and trees of missions. Raises RequestRefused if setup is red, UsageFault if the folder or the
    commit does not exist.
    """
    if not os.path.isdir(folder):
        raise UsageFault(f"There is no folder {folder}.")
    known = contract.parse(files.read_text(contract_path) or "", contract_path)
    if at:
        first_commit.require(folder)
        _require_commit(Layout(folder).folders.top, at)
    tag = temporary.of_process("verify")
    room = temporary.create("verify", tag)
    try:
        yield from _fired(known, _place(contract_path, folder, at, room, tag))
    finally:
        temporary.remove(room)


def _place(contract_path: str, folder: str, at: str, room: str, tag: str) -> CheckEnvironment:
    """The check environment; `room`: a folder for temporary files; `tag`: the tag of its processes."""
    known = repository_of(folder)
    place = CheckEnvironment(
        directory=folder, tag=tag, confinement=confine.of_stranger(Layout(folder).folders.top if known else "")
    )
    if not known:
        return place.replace(home=confine.home_of_clone(os.path.join(room, "home")))
    layout = Layout(folder)
    top, recorded = layout.folders.top, fresh_clone.recorded(layout.folders.top)
    if at:
        head = repository.commit_of(top, at)
        place = place.replace(head=head, tree=repository.tree_of(top, head))
        return fresh_clone.clone(layout, room, place, recorded)
    place.notes += [f"{LOCAL}{', '.join(found)}" for found in [clones.local(top, recorded)] if found]
    place = place.replace(checkout=top if layout.folders.prefix else "")
    return fresh_clone.apart(place, room, recorded, *_origins(contract_path, top, recorded))


def _origins(contract_path: str, folder: str, recorded: RecordedSettings) -> list[str]:
    """The folders on this machine that the clone and the contract came from."""
    above = os.path.dirname(os.path.abspath(contract_path))
    named = os.path.basename(above) == os.path.basename(Layout(folder).state)
    found = [Layout(os.path.dirname(above)).folders.top] if named else []
    found += [str(value).removeprefix("file://") for key, value in recorded.config if key == "remote.origin.url"]
    own, known = os.path.realpath(folder), [os.path.realpath(path) for path in found if os.path.isabs(path)]
    return [path for path in known if os.path.isdir(path) and not (own + "/").startswith(path + "/")]


def _require_commit(folder: str, at: str) -> None:
    """Raise UsageFault if the repository has no such commit."""
    try:
        repository.tree_of(folder, at + "^{commit}")
    except repository.GitFailed:
        remedy = "Give a commit id, a branch or a tag; a shallow clone may lack it (git fetch --unshallow)."
        raise UsageFault(f"There is no commit '{at}' in {folder}. {remedy}") from None


def _fired(known: Contract, place: CheckEnvironment) -> Iterator[Receipt]:
    place = tampering.watched(place, known) if place.source else place  # else it is a person's folder
    fault = check_runs.setup_fault(known, place)
    if fault:
        raise RequestRefused(fault)
    with services.RunningServices(known.services, place) as up:
        yield from check_runs.fire_all(known.claims, "after", up)
